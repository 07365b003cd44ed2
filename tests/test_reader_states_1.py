"""The reader's states of every second notebook, from the first on; see reader_states.py."""

from reader_states import (  # noqa: F401 - pytest finds them here
    half,
    solved,
    test_cells_run_twice_in_a_new_kernel_lose_nothing,
    test_every_other_option_is_stored_and_answered,
    test_every_other_option_works_in_the_whole_notebook,
    test_every_solution_passes_and_the_progress_says_so,
    test_notebook_and_module_agree,
)

pytest_generate_tests = half(0)
