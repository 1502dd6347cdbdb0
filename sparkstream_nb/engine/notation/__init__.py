"""The notation of compiled loops: structs as parameters, inlined and compiled methods, further instructions."""
