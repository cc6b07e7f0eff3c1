/// Distributes the open files that the system allows this process, and checks whether they suffice for the configured limits.
package struct OpenFileBudget: Equatable, Sendable {
    package enum Fit: Equatable, Sendable {
        case fits
        /// The operator did not configure these limits. They were lowered to the available number of files.
        case lowered(sockets: Int, connections: Int)
        /// The operator configured more connections than the available files allow. `room` is the largest sum of both kinds.
        case tooMany(room: Int)
    }

    /// The number of open files that the system allows.
    package var files: Int
    /// Files for other purposes: the store, the log, calls to backends, connections for health checks.
    package var reserved: Int

    package init(files: Int, calls: Int) {
        self.files = files
        reserved = 80 + calls
    }

    /// A limit for connections of one kind.
    package struct Limit: Sendable {
        package var number: Int
        /// Whether the operator set the limit. Otherwise the limit is the default.
        package var isAsked: Bool

        package init(_ number: Int, isAsked: Bool) {
            self.number = number
            self.isAsked = isAsked
        }

        fileprivate var asked: Int { isAsked ? number : 0 }
    }

    package func fit(sockets: Limit, connections: Limit) -> Fit {
        let room = max(0, files - reserved)
        if Self.sum(sockets.number, connections.number) <= room { return .fits }
        let left = room - Self.sum(sockets.asked, connections.asked)
        if left < 0 || sockets.isAsked && connections.isAsked { return .tooMany(room: room) }
        if sockets.isAsked { return .lowered(sockets: sockets.number, connections: max(1, left)) }
        // A socket starts as an HTTP connection and is not counted as one afterwards. One connection for every ten files is
        // enough.
        let most = connections.isAsked ? connections.number : max(1, min(connections.number, room / 10))
        return .lowered(sockets: max(1, room - most), connections: most)
    }

    private static func sum(_ left: Int, _ right: Int) -> Int {
        let (sum, isOverflowing) = left.addingReportingOverflow(right)
        return isOverflowing ? .max : sum
    }
}
