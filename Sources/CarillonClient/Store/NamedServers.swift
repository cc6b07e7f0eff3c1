import GRDB
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A server that sent its id in the header field `Carillon-Server`.
struct NamedServer: Equatable, Sendable {
    /// The address, without a slash at its end.
    var base: String
    /// The id that the server sent.
    var id: String
    /// The time of the last response with the id, in milliseconds of the wall clock. It is stored again after
    /// ``NamedServers/storedEach``.
    var seenAt: Int64
}

/// The servers that sent their id, also in earlier runs of the client.
///
/// A record ends seven days after the last response with the id, so that a server which was replaced by an earlier version
/// without a change of its id is accepted again.
final class NamedServers: Sendable {
    static let mostServers = 8
    static let longestIDBytes = 128
    static let keptFor: Int64 = 7 * 86_400_000
    static let storedEach: Int64 = 86_400_000

    private let store: ClientStore
    private let now: @Sendable () -> Int64
    private let servers: Mutex<[String: NamedServer]>

    init(
        _ servers: [NamedServer], store: ClientStore,
        now: @escaping @Sendable () -> Int64 = { Date().milliseconds }
    ) {
        self.store = store
        self.now = now
        self.servers = Mutex(Dictionary(servers.map { ($0.base, $0) }) { _, last in last })
    }

    /// Returns the id that the server at an address sent; nil if it sent none within seven days.
    func id(of base: String) -> String? {
        guard let server = servers.withLock({ $0[base] }), now() - server.seenAt <= Self.keptFor else { return nil }
        return server.id
    }

    /// Whether the server at an address sent an id, but none within seven days.
    func hasExpired(_ base: String) -> Bool {
        servers.withLock { $0[base] }.map { now() - $0.seenAt > Self.keptFor } ?? false
    }

    /// Records the id in a response of the server.
    func named(_ base: String, _ id: String) {
        guard id.utf8.count <= Self.longestIDBytes else { return }
        let server = NamedServer(base: base, id: id, seenAt: now())
        let (former, isNew) = servers.withLock { servers in
            let former = servers[base]
            let isNew = former.map { $0.id != id || abs(server.seenAt - $0.seenAt) >= Self.storedEach } ?? true
            if isNew { servers[base] = server }
            return (former, isNew)
        }
        guard isNew else { return }
        write { database in
            try database.run(
                "INSERT OR REPLACE INTO named_server (base, id, seen_at) VALUES (?, ?, ?)", [base, id, server.seenAt])
            try database.run(
                "DELETE FROM named_server WHERE base NOT IN (SELECT base FROM named_server ORDER BY seen_at DESC LIMIT ?)",
                [Self.mostServers])
        } orElse: { [self] in
            // The write failed: the next response with the id stores it.
            servers.withLock { if $0[base] == server { $0[base] = former } }
        }
    }

    /// Removes the record of an address at which another server responds without an id.
    func remove(_ base: String) {
        guard servers.withLock({ $0.removeValue(forKey: base) }) != nil else { return }
        write {
            try $0.run("DELETE FROM named_server WHERE base = ?", [base])
        } orElse: {
            // The same response removes the record in the next run.
        }
    }

    private func write(
        _ change: @escaping @Sendable (Database) throws -> Void, orElse failed: @escaping @Sendable () -> Void
    ) {
        store.schedule { [store] database in
            do {
                // A power failure can undo the change: the next response repeats it.
                try store.transaction(reachingDisk: false, in: database) { try change(database) }
            } catch {
                failed()
            }
        }
    }
}
