"""Programs as learners: started, paused and continued without a change to them."""
