import CarillonCore
import GRDB

extension CompletionTable {
    /// See ``UpdateStore/bringBackCompletions(in:dueAfter:at:limit:)``.
    func bringBack(
        in shards: ShardSet, dueAfter moment: Timestamp, at now: Timestamp, limit: Int
    ) throws -> Bool {
        let device = "(SELECT device FROM binding WHERE binding.serial = completion.binding)"
        try db.run(
            """
            UPDATE completion SET changed_at = min(changed_at, :now), due_at = :now
                + min(\(Self.longestWait), iif(changed_at > :now, max(0, due_at - changed_at), due_at - :now))
            WHERE (binding, in_update, entry) IN (
                SELECT binding, in_update, entry FROM completion INDEXED BY completion_due
                WHERE due_at NOT NULL AND due_at > :moment AND (changed_at > :now OR due_at > :now + \(Self.longestWait))
                \(shards.condition(on: device)) LIMIT :limit)
            """, shards.arguments(with: ["now": now.milliseconds, "moment": moment.milliseconds, "limit": limit]))
        return db.changesCount < limit
    }

    private static let longestWait: String = {
        let cases = CompletionMachine.State.allCases.map { state in
            "WHEN \(state.rawValue) THEN \(1000 * CompletionMachine.longestWaitSeconds(in: state))"
        }
        return "CASE state \(cases.joined(separator: " ")) END"
    }()
}
