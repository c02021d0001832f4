"""One measure of rankings a file; a new file is found by itself. `names` has the measures that other functions compute."""

from ...registry import import_files

import_files(__name__, __path__)
