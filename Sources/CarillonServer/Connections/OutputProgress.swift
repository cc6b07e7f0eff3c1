/// The progress of writing to a peer, in bytes.
struct OutputProgress: Equatable {
    /// The bytes that the kernel accepted since the connection began.
    var sent = 0
    /// The bytes that were written to the connection, and that the kernel has not accepted yet.
    var waiting = 0
}
