import SanitizedMutex

/// What `Mutex` means in each target under the thread sanitizer, instead of `Synchronization.Mutex`.
typealias Mutex<Value: ~Copyable> = ThreadMutex<Value>
