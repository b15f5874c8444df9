"""The statements of the everyday world, in the notation of ``everyday_rules``: loops, searches, ways to end."""

from __future__ import annotations

LOOPS = (
    "<+s> = ''\nfor <c> in <s>:\n    if @ctest:\n        <+s> += @cout",
    "<+s> = ''\nfor <c> in <s>:\n    if @ctest:\n        <+s> += @cout\n    else:\n        <+s> += @cout",
    "<+s> = ''\nfor <c> in <s>:\n    <+s> = <c> + <+s>",
    "<+s> = ''\nfor <i>, <c> in enumerate(<s>):\n"
    "    if <i> % 2 == {0|1}:\n        <+s> += @cout\n    else:\n        <+s> += @cout",
    "<+s> = ''\nfor <i> in range({len(<s>)|0, len(<s>), 2|len(<s>) - 1, -1, -1}):\n    <+s> += <s>[<i>]",
    "<+s> = ''\nfor <c> in <s>:\n    if <c> not in <+s>:\n        <+s> += <c>",
    "<+s> = ''\nfor <e> in {<w>|<s>.split()}:\n    <+s> += {@eout|@eout + {' '|'-'}}",
    "<+s> = <s>\nfor <c> in {<A>|<s2>|'aeiou'}:\n    <+s> = <+s>.replace(<c>, {''|'*'|<c>.upper()})",
    "<+s> = ''\nfor <c> in <s>:\n    if <c>.isupper():\n        <+s> += <c>.lower()\n"
    "    elif <c>.islower():\n        <+s> += <c>.upper()\n    else:\n        <+s> += {<c>|<P>}",
    "<+n> = 0\nfor <c> in <s>:\n    if @ctest:\n        <+n> += {1|1|<N>}",
    "<+n> = 0\nfor <c> in <s>:\n    if @ctest:\n        <+n> += 1\n    else:\n        <+n> -= 1",
    "<+n> = 0\nfor <e> in {<w>|<s>.split()}:\n    if @etest:\n        <+n> += {1|len(<e>)}",
    "<+n> = 0\nfor <v> in <x>:\n    if @vtest:\n        <+n> += @vout",
    "<+n> = {0|1}\nfor <i>, <v> in enumerate(<x>):\n    <+n> += <v> * <i>",
    "<+n> = <x>[0]\nfor <v> in <x>{[1:]|}:\n    if <v> {>|<} <+n>:\n        <+n> = <v>",
    "<+n> = 0\nfor <i> in range(len(<x>) - 1):\n    if <x>[<i>] {<|>|==} <x>[<i> + 1]:\n        <+n> += 1",
    "<+n> = 0\nfor <i> in range({1, len(<s>)|1, len(<s>)}):\n    if <s>[<i>] == <s>[<i> - 1]:\n        <+n> += 1",
    "<+x> = []\nfor <v> in <x>:\n    if @vtest:\n        <+x>.append(@vout)",
    "<+x> = []\nfor <v> in <x>:\n    if @vtest:\n        <+x>.append(@vout)\n"
    "    else:\n        <+x>.{insert(0, <v>)|append(<N>)}",
    "<+x> = []\nfor <v> in <x>:\n    if <v> not in <+x>:\n        <+x>.append(<v>)",
    "<+x> = []\n<+n> = 0\nfor <v> in <x>:\n    <+n> += <v>\n    <+x>.append(<+n>)",
    "<+x> = []\nfor <i>, <c> in enumerate(<s>):\n    if @ctest:\n        <+x>.append(<i>)",
    "<+x> = []\nfor <e> in <w>:\n    <+x>.append(len(<e>){| + <N>})",
    "<+x> = []\nfor <v>, <q> in zip(<x>, <x2>):\n    <+x>.append({<v> + <q>|<v> * <q>|max(<v>, <q>)|abs(<v> - <q>)})",
    "<+w> = []\nfor <e> in {<w>|<s>.split()|<s>.split(<S>)}:\n    if @etest:\n        <+w>.append(@eout)",
    "<+w> = []\nfor <e> in {<w>|<s>.split()}:\n    if @etest:\n        <+w>.append(@eout)\n"
    "    else:\n        <+w>.{insert(0, <e>)|append(<e>)}",
    "<+w> = []\nfor <i>, <e> in enumerate(<w>):\n    if <i> % 2 == {0|1}:\n        <+w>.append(@eout)",
    "<+w> = []\nfor <c> in <s>:\n    if <c> not in <+w>:\n        <+w>.append(<c>)",
    "<+w> = []\nfor <k>, <q> in <d>.items():\n    if @qtest:\n        <+w>.append(<k>{| * <q>})",
    "<+w> = []\nfor <k> in {<d>|sorted(<d>)}:\n    <+w>.append({<k>.upper()|<k> + str(<d>[<k>])|<k>})",
    "<+d> = {}\nfor <c> in <s>:\n    <+d>[<c>] = <+d>.get(<c>, 0) + 1",
    "<+d> = {}\nfor <c> in <s>:\n    if <c> in <+d>:\n        <+d>[<c>] += 1\n    else:\n        <+d>[<c>] = 1",
    "<+d> = {}\nfor <c> in <s>:\n    if @ctest:\n        <+d>[<c>] = <s>.{count|index}(<c>)",
    "<+d> = {}\nfor <e> in {<w>|<s>.split()}:\n    <+d>[<e>] = {len(<e>)|<+d>.get(<e>, 0) + 1|len(<+d>)}",
    "<+d> = {}\nfor <i>, <e> in enumerate(<w>):\n    <+d>[<e>] = <i>",
    "<+d> = {}\nfor <e>, <v> in zip(<w>, <x>):\n    <+d>[<e>] = <v>{| * <N>}",
    "<+d> = {}\nfor <k>, <q> in <d>.items():\n    if @qtest:\n        <+d>[<k>] = <q>{| + <N>}",
    "<+d> = {}\nfor <v> in <x>:\n    if @vtest:\n        <+d>[str(<v>)] = <+d>.get(str(<v>), 0) + 1",
    "<+d> = {}\nfor <e> in <w>:\n    <+d>.setdefault(<e>[0], 0)\n    <+d>[<e>[0]] += {1|len(<e>)}",
    "for <k> in list(<=d>):\n    if <=d>[<k>] {>|<} <N>:\n        {del <=d>[<k>]|<=d>.pop(<k>)}",
    "for <k> in <=d>:\n    <=d>[<k>] {+=|*=|-=} <N>",
    "for <i> in range(len(<=x>)):\n    {if <=x>[<i>] % 2 == 0:\n        <=x>[<i>] //= 2|"
    "<=x>[<i>] += <N>|<=x>[<i>] *= -1}",
    "for <i> in range(len(<=w>)):\n    <=w>[<i>] = <=w>[<i>]{.upper()|[::-1]|.strip(<P>)| + str(<i>)}",
    "<i>, <j> = 0, len(<=x>) - 1\nwhile <i> < <j>:\n    <=x>[<i>], <=x>[<j>] = <=x>[<j>], <=x>[<i>]\n"
    "    <i> += 1\n    <j> -= 1",
    "<+n> = 0\nwhile <+n> < len(<s>) and <s>[<+n>] {!=|==} <L>:\n    <+n> += 1",
    "while <=s>.{startswith|endswith}({<L>|' '}):\n    <=s> = <=s>[1:]",
    "while len(<=s>) < {<M>|<n>}:\n    <=s> {+= <L>|= <L> + <=s>|+= <P>}",
    "while len(<=x>) > <N>:\n    <=x>.pop({|0})",
    "<+n> = 0\nwhile <=x>:\n    <+n> {+=|-=} <=x>.pop({|0})",
    "<+s> = ''\nwhile <=n> > 0:\n    <+s> = str(<=n> % {10|2}) + <+s>\n    <=n> //= {10|2}",
    "<+w> = []\n<+s> = ''\nfor <c> in <s>:\n    if <c> == {' '|<S>|<L>}:\n        <+w>.append(<+s>)\n"
    "        <+s> = ''\n    else:\n        <+s> += <c>\n<+w>.append(<+s>)",
    "for <v> in {list(<=x>)|<=x>[:]}:\n    if @vtest:\n        <=x>.remove(<v>)",
)
"""Loops; what is new in them is left as a variable."""

SINGLE = (
    "<+n> = <s>.{find|rfind}({<L>|<S>})\nif <+n> {!= -1|> 0|>= 0}:\n    <=s> = <=s>[{:<+n>|<+n>:|<+n> + 1:}]",
    "<+s>, <+s2> = <s>[:{<N>|len(<s>) // 2}], <s>[{<N>|len(<s>) // 2}:]",
    "<+s>, _, <+s2> = <s>.{partition|rpartition}(<S>)",
    "if @b:\n    @update",
    "if @b:\n    @update\nelse:\n    @update",
    "if @b:\n    @update\nelif @b:\n    @update",
    "if @b:\n    @update\n    if @b:\n        @update",
    "if <x>:\n    <=n> += <x>[0]",
    "<+n>, <+n2> = {len(<s>)|<n>}, {<N>|len(<s>)}",
    "if {<A>|<L>|<s>} in <=d>:\n    <=d>[{<A>|<L>|<s>}] += {1|<N>}\nelse:\n    <=d>[{<A>|<L>|<s>}] = {1|<N>}",
)
"""Short statements other than assignments and changes."""

GUARDS = (
    "if not <s>:\n    return {<A>|''}",
    "if @b:\n    return {<s>|<A>|''}",
    "if len(<x>) < <N>:\n    return {<x>|[]}",
    "if <s>.{startswith|endswith}(<L>):\n    return <s>{[1:]|[:-1]|.upper()}",
    "if <L> not in <s>:\n    return {<s>|'none'}",
)
"""Early returns at the head of a function."""

ENDINGS = (
    "if @b:\n    return @s\nreturn @s",
    "if @b:\n    return @s\nelse:\n    return @s",
    "if @b:\n    return @n\nreturn {-1|0|<n>}",
    "if @b:\n    return <s>\nelif @b:\n    return @s\nreturn {<A>|''|@s}",
    "if @b:\n    return {'yes'|'ok'|True}\nreturn {'no'|'bad'|False}",
    "for <c> in <s>:\n    if @ctest:\n        return {<c>|True|False}\nreturn {''|False|True|None}",
    "for <i>, <c> in enumerate(<s>):\n    if @ctest:\n        return {<i>|<s>[<i>:]|<s>[:<i>]}\nreturn {-1|<s>}",
    "for <e> in <w>:\n    if @etest:\n        return @eout\nreturn {'none'|''|None}",
    "for <i>, <v> in enumerate(<x>):\n    if @vtest:\n        return {<i>|<v>}\nreturn {-1|None}",
    "for <k>, <q> in <d>.items():\n    if @qtest:\n        return {<k>|<q>}\nreturn {None|''}",
    "<i>, <j> = 0, len(<s>) - 1\nwhile <i> < <j>:\n    if <s>[<i>] != <s>[<j>]:\n        return {False|<i>}\n"
    "    <i> += 1\n    <j> -= 1\nreturn {True|-1}",
    "for <i> in range(len(<x>) - 1):\n    if <x>[<i>] > <x>[<i> + 1]:\n        return {False|<i>}\nreturn {True|-1}",
    "if {<A>|<L>|<s>} in <d>:\n    return <d>[{<A>|<L>|<s>}]\nreturn {None|0|len(<d>)}",
    "for <v> in <x>:\n    if <v> == {<n>|<N>}:\n        break\n    <n> += <v>\nreturn <n>",
)
"""Ways to end that return from several places."""

HELPERS: tuple[tuple[str, str, str], ...] = (
    ("s", "s", "def g(w):\n    return w[{0|-1}].upper() + w[{1:|:-1}]"),
    ("s", "s", "def g(w):\n    if {len(w) > <N>|<L> in w|w.isupper()}:\n        return w{[::-1]|[:<N>]|.lower()}\n"
     "    return w{|.upper()| + <P>}"),
    ("s", "n", "def count(w):\n    return sum(1 for c in w if c in {'aeiou'|<A>})"),
    ("s", "b", "def check(w):\n    return {w == w[::-1]|len(w) > <N>|w.startswith(<L>)|w.isalpha()}"),
    ("n", "n", "def g(n):\n    if n {> <M>|% 2 == 0|< <N>}:\n        return n {//|*|+|-} <N>\n"
     "    return n{| + <N>| * 2}"),
    ("n", "b", "def check(n):\n    return n {> <M>|% 2 == 0|% 3 != 0|< <N>}"),
    ("x", "n", "def g(xs):\n    return {max(xs) - min(xs)|sum(xs) // len(xs)|xs[0] + xs[-1]}"),
)  # fmt: skip
"""Helpers before ``f``: the letters of what they take and give, and their text."""

HELPER_USES: dict[str, tuple[str, ...]] = {
    "ss": ("<+s> = HELPER(<s>)", "<+w> = [HELPER(<e>) for <e> in <w> if <e>]", "<+w> = list(map(HELPER, <s>.split()))",
           "<+s> = ' '.join(HELPER(<e>) for <e> in <s>.split())"),
    "sn": ("<+n> = HELPER(<s>)", "<+x> = [HELPER(<e>) for <e> in <w>]",
           "<+n> = sum(HELPER(<e>) for <e> in <s>.split())"),
    "sb": ("<+w> = [<e> for <e> in <w> if HELPER(<e>)]", "if HELPER(<s>):\n    @update", "<+b> = HELPER(<s>)"),
    "nn": ("<+n> = HELPER(<n>)", "<+x> = [HELPER(<v>) for <v> in <x>]", "<+n> = HELPER(len(<s>))"),
    "nb": ("<+x> = [<v> for <v> in <x> if HELPER(<v>)]", "if HELPER(<n>):\n    @update"),
    "xn": ("<+n> = HELPER(<x>)",),
}  # fmt: skip
"""Statements that call a helper, by those two letters."""
