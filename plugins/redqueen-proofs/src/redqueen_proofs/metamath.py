"""A verifier of Metamath databases: it reads them and checks every proof, normal or compressed.

The language is that of the Metamath book: ``$c $v $f $e $d $a $p`` and scopes ``${ $}``; including files (``$[``) is
not supported. Nothing is evaluated, there is no recursion, and ``most_symbols`` bounds the symbols that one proof may
write, so the cost of hostile text is proportional to that bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_SYMBOLS = 50_000_000
"""Maximum number of symbols that the steps of one proof may write (ours); the longest proofs of set.mm need fewer."""

Symbols = tuple[str, ...]
_COMMENT = re.compile(r"(?:^|(?<=\s))\$\((?=\s)[\s\S]*?(?<=\s)\$\)(?=\s|$)")
_LABEL = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_SYMBOL = re.compile(r"[!-#%-~]+", re.ASCII)
_KEYWORDS = {"$c", "$v", "$f", "$e", "$d", "$a", "$p", "${", "$}", "$.", "$="}


class MetamathError(ValueError):
    """The database cannot be read; the message says where and why."""


@dataclass(frozen=True)
class Hypothesis:
    """A ``$f`` statement (``variable``: the one that it types) or a ``$e`` statement (``variable``: "")."""

    label: str
    symbols: Symbols
    variable: str = ""


@dataclass(frozen=True)
class Assertion:
    """An ``$a`` or ``$p`` statement with its mandatory hypotheses and the pairs of variables that must be distinct."""

    label: str
    symbols: Symbols
    hypotheses: tuple[Hypothesis, ...]
    distinct: frozenset[tuple[str, str]]


@dataclass
class _Scope:
    variables: set[str] = field(default_factory=set)
    floats: list[Hypothesis] = field(default_factory=list)
    hypotheses: list[Hypothesis] = field(default_factory=list)
    distinct: set[tuple[str, str]] = field(default_factory=set)


@dataclass
class Database:
    """A parsed database. ``faults``: the reasons of wrong proofs by label; ``proved``: the labels of right proofs."""

    most_symbols: int = MAX_SYMBOLS
    faults: dict[str, str] = field(default_factory=dict)
    proved: list[str] = field(default_factory=list)
    constants: set[str] = field(default_factory=set)
    statements: dict[str, Hypothesis | Assertion] = field(default_factory=dict)
    _scopes: list[_Scope] = field(default_factory=lambda: [_Scope()])
    _ever_variables: set[str] = field(default_factory=set)
    _active: dict[str, Hypothesis] = field(default_factory=dict)
    _types: dict[str, Hypothesis] = field(default_factory=dict)
    _order: dict[str, int] = field(default_factory=dict)

    def read(self, text: str, only: str = "") -> Database:
        """Read more text, and check the proofs in it (with ``only``: the one of this label). Raises MetamathError."""
        tokens = iter(_without_comments(text).split())
        label = ""
        for token in tokens:
            if token in ("$f", "$e", "$a", "$p"):
                self._labelled(token, label, tokens, only)
                label = ""
                continue
            if label:
                raise MetamathError(f"{label}: a label without a statement")
            if token in ("$c", "$v", "$d"):
                self._declare(token, list(_until(tokens, "$.", token)))
            elif token == "${":
                self._scopes.append(_Scope())
            elif token == "$}":
                self._close()
            elif token == "$[":
                raise MetamathError("a file is included ($[): give one whole file")
            elif token.startswith("$"):
                raise MetamathError(f"{token} where a statement should begin")
            else:
                label = token
        if label:
            raise MetamathError(f"{label}: a label without a statement")
        return self

    def branch(self, most_symbols: int) -> Database:
        """Return a copy that can read more text without changing this one; no scope may be open."""
        (scope,) = self._scopes
        return Database(
            most_symbols,
            constants=set(self.constants),
            statements=dict(self.statements),
            _scopes=[_Scope(set(scope.variables), list(scope.floats), list(scope.hypotheses), set(scope.distinct))],
            _ever_variables=set(self._ever_variables),
            _active=dict(self._active),
            _types=dict(self._types),
            _order=dict(self._order),
        )

    def end(self) -> Database:
        """Finish reading. Raises MetamathError when a scope is open."""
        if len(self._scopes) > 1:
            raise MetamathError("a scope is not closed")
        return self

    def _close(self) -> None:
        if len(self._scopes) == 1:
            raise MetamathError("$} without ${")
        gone = self._scopes.pop()
        for hypothesis in (*gone.floats, *gone.hypotheses):
            del self._active[hypothesis.label]
        for hypothesis in gone.floats:
            del self._types[hypothesis.variable]

    def _is_variable(self, symbol: str) -> bool:
        return any(symbol in scope.variables for scope in self._scopes)

    def _declare(self, keyword: str, symbols: list[str]) -> None:
        if keyword == "$d":
            if len(set(symbols)) < max(2, len(symbols)) or not all(map(self._is_variable, symbols)):
                raise MetamathError("$d needs different active variables")
            self._scopes[-1].distinct.update((min(a, b), max(a, b)) for a in symbols for b in symbols if a != b)
            return
        if keyword == "$c" and len(self._scopes) > 1:
            raise MetamathError("$c within a scope")
        for symbol in symbols:
            is_taken = symbol in self.constants or symbol in self.statements or self._is_variable(symbol)
            if is_taken or not _SYMBOL.fullmatch(symbol) or (keyword == "$c" and symbol in self._ever_variables):
                raise MetamathError(f"{symbol} cannot be declared")
            if keyword == "$c":
                self.constants.add(symbol)
            else:
                self._scopes[-1].variables.add(symbol)
                self._ever_variables.add(symbol)
        if not symbols:
            raise MetamathError(f"{keyword} declares nothing")

    def _labelled(self, keyword: str, label: str, tokens: Iterator[str], only: str) -> None:
        if not label or not _LABEL.fullmatch(label) or label in self.statements or label in self.constants:
            raise MetamathError(f"{keyword}: the label {label!r} is missing, misspelt or taken")
        proof: list[str] = []
        if keyword == "$p":
            symbols = tuple(_until(tokens, "$=", label))
            proof = list(_until(tokens, "$.", label))
        else:
            symbols = tuple(_until(tokens, "$.", label))
        self._check_symbols(keyword, label, symbols)
        if keyword == "$f":
            found = Hypothesis(label, symbols, symbols[1])
            self._scopes[-1].floats.append(found)
            self._types[symbols[1]] = found
        elif keyword == "$e":
            found = Hypothesis(label, symbols)
            self._scopes[-1].hypotheses.append(found)
        else:
            assertion = self._framed(label, symbols)
            if keyword == "$p" and only in ("", label):
                fault = self._fault(assertion, proof)
                if fault:
                    self.faults[label] = fault
                else:
                    self.proved.append(label)
            self.statements[label] = assertion
            return
        self.statements[label] = found
        self._order[label] = len(self._order)
        self._active[label] = found

    def _check_symbols(self, keyword: str, label: str, symbols: Symbols) -> None:
        if not symbols or symbols[0] not in self.constants:
            raise MetamathError(f"{label}: a statement begins with a constant")
        if keyword == "$f":
            if len(symbols) != 2 or not self._is_variable(symbols[1]) or symbols[1] in self._types:
                raise MetamathError(f"{label}: $f types one variable, once")
            return
        for symbol in symbols:
            if symbol not in self.constants and symbol not in self._types:
                raise MetamathError(f"{label}: {symbol} is no constant and no variable with a type")

    def _framed(self, label: str, symbols: Symbols) -> Assertion:
        essential = [hypothesis for scope in self._scopes for hypothesis in scope.hypotheses]
        used = {symbol for statement in essential for symbol in statement.symbols if symbol in self._types}
        used.update(symbol for symbol in symbols if symbol in self._types)
        mandatory = [*essential, *(self._types[variable] for variable in used)]
        mandatory.sort(key=lambda hypothesis: self._order[hypothesis.label])
        pairs = frozenset(pair for scope in self._scopes for pair in scope.distinct if used.issuperset(pair))
        return Assertion(label, symbols, tuple(mandatory), pairs)

    def _fault(self, assertion: Assertion, proof: list[str]) -> str:
        """Return why a proof is wrong, or ""."""
        try:
            steps = _decompress(self, assertion, proof) if proof[:1] == ["("] else proof
            _Checker(self, assertion).run(steps)
        except MetamathError as error:
            return str(error)
        return ""

    def active(self, label: str) -> Hypothesis | Assertion:
        """Return the statement that a proof may use under this label. Raises MetamathError."""
        found = self.statements.get(label)
        if found is None or (isinstance(found, Hypothesis) and label not in self._active):
            raise MetamathError(f"{label} cannot be used here")
        return found

    def active_distinct(self) -> set[tuple[str, str]]:
        """Return the pairs of variables that are distinct in the current scopes."""
        return set().union(*(scope.distinct for scope in self._scopes))

    def is_variable(self, symbol: str) -> bool:
        """Return whether a symbol is a variable with a type in the current scopes."""
        return symbol in self._types


def _without_comments(text: str) -> str:
    comments = _COMMENT.findall(text)
    text = _COMMENT.sub(" ", text)
    if "$(" in text or "$)" in text or any("$(" in comment[2:] for comment in comments):
        raise MetamathError("a comment is not closed, not opened, or inside another")
    return text


def _until(tokens: Iterator[str], end: str, where: str) -> Iterator[str]:
    for token in tokens:
        if token == end:
            return
        if token in _KEYWORDS:
            raise MetamathError(f"{where}: {token} before {end}")
        yield token
    raise MetamathError(f"{where}: the text ends before {end}")


Step = str | int
"""A label; or a number: -1 saves the top of the stack, n >= 0 pushes the n-th saved statement."""


def _decompress(database: Database, assertion: Assertion, proof: list[str]) -> list[Step]:
    if ")" not in proof:
        raise MetamathError("the labels of a compressed proof are not closed")
    end = proof.index(")")
    mandatory = [hypothesis.label for hypothesis in assertion.hypotheses]
    named = proof[1:end]
    if set(named) & set(mandatory) or len(set(named)) < len(named):
        raise MetamathError("a compressed proof lists a mandatory hypothesis, or a label twice")
    for label in named:
        database.active(label)
    labels = [*mandatory, *named]
    steps: list[Step] = []
    number = num_saved = 0
    may_save = False
    for letter in "".join(proof[end + 1 :]):
        if "A" <= letter <= "T":
            number = number * 20 + ord(letter) - ord("A")
            if number >= len(labels) + num_saved:
                raise MetamathError("a number of a compressed proof is too large")
            steps.append(labels[number] if number < len(labels) else number - len(labels))
            may_save = number >= 0
            number = 0
        elif "U" <= letter <= "Y":
            number = number * 5 + ord(letter) - ord("U") + 1
            if number > len(labels) + num_saved:
                raise MetamathError("a number of a compressed proof is too large")
            may_save = False
        elif letter == "Z" and may_save and number == 0:
            steps.append(-1)
            num_saved += 1
            may_save = False
        elif letter == "?":
            raise MetamathError("the proof is not complete")
        else:
            raise MetamathError(f"{letter} where a compressed proof cannot have it")
    if number:
        raise MetamathError("a compressed proof ends within a number")
    return steps


class _Checker:
    """Runs one proof on a stack."""

    def __init__(self, database: Database, assertion: Assertion) -> None:
        self.database = database
        self.assertion = assertion
        self.stack: list[Symbols] = []
        self.saved: list[Symbols] = []
        self.distinct = database.active_distinct()
        self.left = database.most_symbols

    def run(self, steps: list[Step] | list[str]) -> None:
        for step in steps:
            if isinstance(step, int):
                if step < 0:
                    self.saved.append(self.stack[-1])
                else:
                    self.stack.append(self.saved[step])
                continue
            if step == "?":
                raise MetamathError("the proof is not complete")
            if step == self.assertion.label:
                raise MetamathError("a proof uses what it proves")
            found = self.database.active(step)
            if isinstance(found, Hypothesis):
                self.stack.append(found.symbols)
            else:
                self._apply(found)
        if self.stack != [self.assertion.symbols]:
            raise MetamathError("the proof ends with something else, or with more")

    def _apply(self, assertion: Assertion) -> None:
        base = len(self.stack) - len(assertion.hypotheses)
        if base < 0:
            raise MetamathError(f"{assertion.label} needs more than is there")
        substitution: dict[str, Symbols] = {}
        for hypothesis, given in zip(assertion.hypotheses, self.stack[base:], strict=True):
            if hypothesis.variable:
                if given[0] != hypothesis.symbols[0]:
                    raise MetamathError(f"{assertion.label}: {hypothesis.label} is of another sort")
                substitution[hypothesis.variable] = given[1:]
            elif given != self._placed(hypothesis.symbols, substitution):
                raise MetamathError(f"{assertion.label}: {hypothesis.label} does not fit")
        if assertion.distinct:
            self._check_distinct(assertion, substitution)
        self.stack[base:] = [self._placed(assertion.symbols, substitution)]

    def _placed(self, symbols: Symbols, substitution: dict[str, Symbols]) -> Symbols:
        placed: list[str] = []
        for symbol in symbols:
            if symbol in substitution:
                placed += substitution[symbol]
            else:
                placed.append(symbol)
        self.left -= len(placed)
        if self.left < 0:
            raise MetamathError("the proof writes more than is given to any proof")
        return tuple(placed)

    def _check_distinct(self, assertion: Assertion, substitution: dict[str, Symbols]) -> None:
        is_variable = self.database.is_variable
        inside = {name: {s for s in symbols if is_variable(s)} for name, symbols in substitution.items()}
        for a, b in assertion.distinct:
            for first in inside[a]:
                for second in inside[b]:
                    if first == second or (min(first, second), max(first, second)) not in self.distinct:
                        raise MetamathError(f"{assertion.label}: {first} and {second} must be distinct")


def verify(text: str, only: str = "") -> Database:
    """Read a whole database and check its proofs (with ``only``: the one of this label). Raises MetamathError."""
    return Database().read(text, only).end()
