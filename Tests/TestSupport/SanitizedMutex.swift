#if CARILLON_SANITIZED
    import SanitizedMutex

    typealias Mutex<Value: ~Copyable> = ThreadMutex<Value>
#endif
