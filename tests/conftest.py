"""What all tests share: quiet libraries, one thread, no deadlines on a machine that may be busy."""

from hypothesis import settings

settings.register_profile("redqueen", deadline=None)
settings.load_profile("redqueen")
