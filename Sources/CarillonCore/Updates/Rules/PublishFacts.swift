package import CarillonWire

/// A fact that the publication of an update needs.
package enum PublishQuestion: Sendable {
    /// The update of the app with the `Idempotency-Key`.
    case earlier
    /// The update of the app that must be superseded.
    case superseded
    /// The numbers of live updates of the app.
    case counts
    /// The bytes of the audiences of the app's live updates, without paused updates.
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
    /// The facts that were read. A member without a value then means that the store has none.
    package var answered: Set<PublishQuestion> = []
    package var earlier: Earlier?
    package var superseded: Update?
    package var counts = Counts(live: 0, unindexed: 0)
    package var audienceBytes = 0

    package init(isAppDeleted: Bool = false) { self.isAppDeleted = isAppDeleted }
}
