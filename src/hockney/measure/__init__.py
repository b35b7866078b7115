"""From a plan to stored measurements.

The way of a measurement: `plan.make_plan` lists the points. `run.measure` stores the new run, warns, and makes the
launches: for each a `sampler.Sampler` (or one of its kinds: load, rates, interleave, health) chooses the next point and
its batch. `pool.WorkerPool` has the jobs, and measures the point in one of them. `recorder.Recorder` gets each
measurement and the end of each round, stores them and tells the display; at the end it stores what to warn of.
"""
