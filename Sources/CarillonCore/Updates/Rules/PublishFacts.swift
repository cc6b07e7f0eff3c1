package import CarillonWire

/// A question about facts that the publication of an update needs.
package enum PublishQuestion: Sendable {
    /// Which update of the app has the `Idempotency-Key`?
    case earlier
    /// Which update of the app is to be superseded?
    case superseded
    /// How many updates of the app are live?
    case counts
    /// How many bytes do the audiences of the app's live updates have, without paused updates?
    case audienceBytes
}

package struct PublishFacts: Equatable, Sendable {
    package struct Earlier: Equatable, Sendable {
        package var id: UpdateID
        package var fingerprint: [UInt8]?

        package init(id: UpdateID, fingerprint: [UInt8]?) {
            self.id = id
            self.fingerprint = fingerprint
        }
    }

    package struct Counts: Equatable, Sendable {
        package var live: Int
        /// The number of these updates whose audience no index finds.
        package var unindexed: Int

        package init(live: Int, unindexed: Int) {
            self.live = live
            self.unindexed = unindexed
        }
    }

    package var isAppDeleted: Bool
    /// The questions that were answered. A member without a value then means that the store has none.
    package var answered: Set<PublishQuestion> = []
    package var earlier: Earlier?
    package var superseded: Update?
    package var counts = Counts(live: 0, unindexed: 0)
    package var audienceBytes = 0

    package init(isAppDeleted: Bool = false) { self.isAppDeleted = isAppDeleted }
}
