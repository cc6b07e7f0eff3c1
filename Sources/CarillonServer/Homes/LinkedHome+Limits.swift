extension LinkedHome {
    /// The limits of calls that wait to be sent. They leave out parts of bodies, because a home reads one part at a time.
    package struct Limits: Sendable {
        /// The most calls that wait. Beyond it a call fails with ``HomeFault/unreachable``. If ``Home/settle(_:of:)`` finds no room, the sessions
        /// of its device end, so that the envelope comes again. If the device has none, its next arrival fails: the session that arrives can
        /// have given the envelope at another home. As many such devices are remembered.
        package var calls = 10_000
        /// The same in bytes. A question counts as 1,024 bytes.
        package var callBytes = 64 << 20
        /// The most calls of the home that wait for one session. Beyond it the session ends.
        package var sessionCalls = 4096
        /// The same in bytes.
        package var sessionBytes = 8 << 20

        package init() {}
    }
}
