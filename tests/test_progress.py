from newfound.progress import Progress, StepProgress, no_progress


def test_no_progress_takes_what_either_callback_takes():
    whole: Progress = no_progress
    step: StepProgress = no_progress
    assert whole("Encoding", 1, 2) is None
    assert step(1, 2) is None
