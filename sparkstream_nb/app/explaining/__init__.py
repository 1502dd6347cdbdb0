"""Why an output did not come: found by changing the input, as little as possible, until it comes."""
