"""What the tests of the plug-in share: the domain is loaded, as a run that names it does."""

from redqueen.domains.registry import open_domain

open_domain("redqueen_proofs.kinds:PROOFS")
