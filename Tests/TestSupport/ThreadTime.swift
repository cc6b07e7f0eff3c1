#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// How long a thread computed. Other tests and programs do not count, however much they compute beside it.
package enum ThreadTime {
    /// Returns the time that synchronous work uses of its thread.
    package static func measure(_ work: () throws -> Void) rethrows -> Duration {
        let began = now()
        try work()
        return now() - began
    }

    private static func now() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
