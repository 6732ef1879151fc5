"""functrans among the libraries whose threads ``threadpoolctl`` shows and limits.

Here: ``register_controller``. So ``threadpool_limits``, and what uses it to keep pools of workers
from having too many threads, count for compiled programs, too. Not here: the number
(``compiler.threads``), which is imported when it is asked for.

Layer: ``errors`` (imports nothing from functrans but ``namespaces``).
"""

from functrans.namespaces import imported


def register_controller() -> None:
    """Make functrans known to ``threadpoolctl``, if that is installed."""
    try:
        from threadpoolctl import LibController, register  # type: ignore[import-not-found,import-untyped,unused-ignore]  # an option
    except ImportError:
        return

    class Controller(LibController):  # type: ignore[misc]  # it may be missing
        """The threads of compiled programs; it is there where NumPy is."""

        user_api = internal_api = "functrans"
        filename_prefixes = ("_multiarray_umath",)

        def get_num_threads(self) -> int:
            count: int = imported("functrans.compiler.threads", "get_num_threads")()
            return count

        def set_num_threads(self, num_threads: int) -> None:
            imported("functrans.compiler.threads", "limit_num_threads")(num_threads)

        def get_version(self) -> None:
            """None: the file is NumPy's."""

    register(Controller)
