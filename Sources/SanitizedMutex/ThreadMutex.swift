#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// `Synchronization.Mutex`, as the thread sanitizer can see it.
///
/// On Linux that one locks with a futex inside the runtime library, which is not instrumented: what it guards looks
/// unguarded. This one locks with pthreads, whose calls the sanitizer knows. It exists only in builds with
/// `CARILLON_SANITIZED`. There the plugin `MutexAlias` compiles the type alias in `Alias/` as a part of each target: a name that a
/// target declares goes before the names that it imports.
package struct ThreadMutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    // Sendable as the value is touched only while the lock is held, and came here from nowhere else.
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let value: UnsafeMutablePointer<Value>

    package init(_ initialValue: consuming sending Value) {
        lock = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
        value = .allocate(capacity: 1)
        value.initialize(to: initialValue)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }
}
