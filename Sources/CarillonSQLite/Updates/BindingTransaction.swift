import CarillonCore
import CarillonWire
import GRDB

/// Changes bindings inside one transaction, as ``BindingRules`` decides.
struct BindingTransaction {
    private let db: Database
    private let rules = BindingRules()
    private let reader: BindingReader
    private let writer: BindingChangeWriter

    init(_ db: Database) {
        self.db = db
        reader = BindingReader(db)
        writer = BindingChangeWriter(db)
    }

    /// Returns the binding of a device with its present user and a profile. Returns nil if there is no such device, its app was
    /// deleted, or the device has too many bindings. Nothing is written then.
    func begin(of device: DeviceSerial, profile: String, at now: Timestamp) throws -> UpdateBinding? {
        var facts = try reader.beginFacts(of: device, profile: profile)
        while true {
            switch rules.begin(profile, at: now, knowing: facts) {
            case .needsUnfinished: facts.unfinished = try reader.unfinished(of: device)
            case .needsMissedContent(let binding): facts.missed = try reader.missedContent(of: binding)
            case .present(let binding): return try BindingTable(db).binding(binding)
            case .refused: return nil
            case .begins(let changes): return try writer.write(changes)
            }
        }
    }

    /// Ends the bindings of other users. Their unfinished completions are kept in case the users return.
    func userChanged(of device: DeviceSerial, to user: UserID?, at now: Timestamp) throws {
        let changes = rules.userChanged(at: now, knowing: try reader.openBindings(of: device, user: user))
        try writer.write(changes)
        for end in changes.ended { try CompletionTransaction(db).endAll(of: end.binding, at: now) }
    }

    /// Writes parameters and kinds if the binding has this revision and did not end.
    ///
    /// - Parameter hasOtherKinds: Whether the kinds have changed.
    /// - Returns: The binding after the change, with the envelopes that must be removed from the inbox in the same transaction.
    func change(
        _ binding: UpdateBinding, hasOtherKinds: Bool, at now: Timestamp
    ) throws -> (binding: UpdateBinding, takenOut: [MessageID])? {
        let changed = rules.changed(binding)
        guard try writer.write(changed, over: binding.revision) else { return nil }
        let unknown = hasOtherKinds ? try CompletionTransaction(db).followKinds(of: binding, at: now) : []
        return (changed, unknown)
    }

    /// Writes the cursor of a binding. Returns false if the binding has another revision.
    ///
    /// - Parameter isFull: Whether updates after the cursor had no room.
    func evaluated(_ binding: BindingSerial, revision: Int64, to place: AudienceCursor, isFull: Bool) throws -> Bool {
        let facts = try reader.heldFacts(of: binding)
        guard let change = rules.evaluated(to: place, isFull: isFull, of: revision, knowing: facts) else { return false }
        try writer.write(change, of: binding)
        return true
    }
}
