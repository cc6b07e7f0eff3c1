extension LinkedHome {
    /// The limits of calls that wait to be sent. Parts of bodies are not counted, because a home reads one part at a time.
    package struct Limits: Sendable {
        /// The largest number of waiting calls. Beyond it, a call fails with ``HomeFault/unreachable``. If ``Home/finish(_:of:)``
        /// exceeds the limit, the sessions of its device end, so that the envelope is delivered again. If the device has no
        /// session, its next arrival fails: the arriving session can have delivered the envelope at another home. The same number
        /// limits the stored devices of this kind.
        package var calls = 10_000
        /// The largest size of all waiting calls, in bytes. A question counts as 1,024 bytes.
        package var callBytes = 64 << 20
        /// The largest number of calls of the home that wait for one session. Beyond it the session ends.
        package var sessionCalls = 4096
        /// The largest size of these calls, in bytes.
        package var sessionBytes = 8 << 20

        package init() {}
    }
}
