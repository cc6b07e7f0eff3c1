/// Decides which binding a device has with a user and a profile, which bindings end or are removed for another one, how a change
/// of parameters changes a binding, and which place in the log a binding has.
///
/// The rules do not read the store: they receive facts, return changes of rows, and request the missing facts.
package struct BindingRules: Sendable {
    package enum BeginVerdict: Equatable, Sendable {
        /// The caller must read which bindings of the device have unfinished completions, and decide again.
        case needsUnfinished
        /// The caller must read the missed content of this binding, and decide again.
        case needsMissedContent(of: BindingSerial)
        /// The device has this binding already.
        case present(BindingSerial)
        /// The device does not exist, its app was deleted, or no binding can be removed for another one.
        case refused
        case begins(BindingChanges)
    }

    private let mostOfDevice: Int

    package init(mostOfDevice: Int = UpdateBinding.mostOfDevice) { self.mostOfDevice = mostOfDevice }

    // MARK: Beginnings and ends

    /// Begins the binding of a device with its present user and a profile. A device has one binding at a time: any other binding
    /// ends.
    package func begin(_ profile: String, at now: Timestamp, knowing facts: BeginFacts) -> BeginVerdict {
        guard let owner = facts.owner else { return .refused }
        let own = facts.bindings.first(where: \.isOwn)
        if let own, own.endedAt == nil { return .present(own.serial) }
        guard !owner.isAppDeleted else { return .refused }
        var changes = BindingChanges()
        if let own {
            guard let missed = facts.missed else { return .needsMissedContent(of: own.serial) }
            changes.beginning = .again(Self.again(own, missed, at: now))
        } else {
            if facts.bindings.count >= mostOfDevice {
                guard let unfinished = facts.unfinished else { return .needsUnfinished }
                guard let idle = Self.leastRecent(of: facts.bindings, without: unfinished, at: now) else { return .refused }
                changes.removed = idle
            }
            changes.beginning = .new(BindingChanges.New(owner: owner, profile: profile, at: now))
        }
        changes.ended = facts.bindings.filter { $0.endedAt == nil && $0.serial != changes.removed }
            .map { BindingChanges.End($0, needsCleanup: true, at: now) }
        return .begins(changes)
    }

    private static func again(_ row: BindingRow, _ missed: MissedContent, at now: Timestamp) -> BindingChanges.Again {
        BindingChanges.Again(
            binding: row.serial, revision: row.revision + 1,
            needsResync: row.needsResync || missed.endedWithBinding || missed.isWithoutResult,
            expiresContent: missed.endedWithBinding, at: now)
    }

    /// Returns the binding without unfinished completions that ended first. A binding that has not ended counts as ending
    /// now.
    private static func leastRecent(
        of bindings: [BindingRow], without unfinished: Set<BindingSerial>, at now: Timestamp
    ) -> BindingSerial? {
        bindings.filter { !unfinished.contains($0.serial) }
            .min { ($0.endedAt ?? now, $0.serial.rawValue) < ($1.endedAt ?? now, $1.serial.rawValue) }?.serial
    }

    /// Ends bindings after the user of a device changed. The caller ends the completions of these bindings.
    package func userChanged(at now: Timestamp, knowing bindings: [BindingRow]) -> BindingChanges {
        var changes = BindingChanges()
        changes.ended = bindings.filter { $0.endedAt == nil && !$0.isOwn }
            .map { BindingChanges.End($0, needsCleanup: false, at: now) }
        return changes
    }

    // MARK: Parameters and places

    /// Returns a binding with its next revision and without a place, so that the log is evaluated for it again.
    package func changed(_ binding: UpdateBinding) -> UpdateBinding {
        var changed = binding
        changed.revision += 1
        changed.cursor = .nowhere
        return changed
    }

    /// Returns the new place of a binding after the log was evaluated for it. Under the same rules, the place never moves back.
    ///
    /// - Parameters:
    ///   - isFull: Whether the inbox had no room for updates after the place. Content among them can expire without a completion.
    ///   - facts: Nil if the binding ended.
    /// - Returns: Nil if the binding has another revision.
    package func evaluated(
        to place: AudienceCursor, isFull: Bool, of revision: Int64, knowing facts: CursorFacts?
    ) -> CursorChange? {
        guard let facts, facts.revision == revision else { return nil }
        var evaluated = place
        if facts.cursor.rules == place.rules { evaluated.place = max(facts.cursor.place, place.place) }
        var seen = facts.seenTo
        if isFull {
            seen = min(seen, place.place)
        } else if facts.lastExpired <= seen {
            seen = max(seen, place.place)
        }
        return CursorChange(cursor: evaluated, seenTo: seen)
    }
}

extension BindingChanges.End {
    fileprivate init(_ row: BindingRow, needsCleanup: Bool, at now: Timestamp) {
        self.init(binding: row.serial, revision: row.revision + 1, needsCleanup: needsCleanup, at: now)
    }
}
