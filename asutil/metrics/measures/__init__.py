"""One measure of rankings a file; a new file is found by itself. `names` has the measures that other functions compute."""
