"""The parts of Tests/Benchmarks/peers, which measures Kith beside other programs."""
