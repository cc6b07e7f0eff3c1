/// The progress of the files of a request, or of its reply.
public struct ServiceProgress: Hashable, Sendable {
    /// The direction of a transfer.
    public enum Direction: String, Hashable, Sendable {
        /// From this device to the server.
        case sending
        /// From the server to this device.
        case receiving
    }

    /// The direction of the transfer.
    public var direction: Direction
    /// The bytes of the sealed files that were transferred.
    public var completedBytes: Int64
    /// The bytes of all sealed files of the message: up to 12 % more than the files have.
    public var totalBytes: Int64

    /// The transferred part, from 0 to 1.
    public var fractionCompleted: Double {
        totalBytes > 0 ? Double(completedBytes) / Double(totalBytes) : 1
    }

    /// Makes a progress, for example in the tests of an app.
    public init(_ direction: Direction, completedBytes: Int64, totalBytes: Int64) {
        self.direction = direction
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
    }
}
