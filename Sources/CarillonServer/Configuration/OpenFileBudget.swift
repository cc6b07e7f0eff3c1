/// How the files that the system lets this process open are shared out, and whether they suffice for what was asked.
package struct OpenFileBudget: Equatable, Sendable {
    package enum Fit: Equatable, Sendable {
        case fits
        /// Nobody asked for so many, and this is what there is room for.
        case lowered(sockets: Int, connections: Int)
        /// Somebody asked for more than there is room for: the most connections of both kinds together.
        case tooMany(room: Int)
    }

    /// What the system allows.
    package var files: Int
    /// Other open files: the store, the log, calls to back ends, connections for health checks.
    package var reserved: Int

    package init(files: Int, calls: Int) {
        self.files = files
        reserved = 80 + calls
    }

    /// A number of connections.
    package struct Limit: Sendable {
        package var number: Int
        /// Whether the operator said it; otherwise it is the default.
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
        // A socket begins as a connection, and is not among them afterwards: one in ten is enough.
        let most = connections.isAsked ? connections.number : max(1, min(connections.number, room / 10))
        return .lowered(sockets: max(1, room - most), connections: most)
    }

    private static func sum(_ left: Int, _ right: Int) -> Int {
        let (sum, isOverflowing) = left.addingReportingOverflow(right)
        return isOverflowing ? .max : sum
    }
}
