package import CarillonWire

/// Something that must be known to publish an update.
package enum PublishQuestion: Sendable {
    /// Which update of the app has the `Idempotency-Key`?
    case earlier
    /// Which update of the app is to be superseded?
    case superseded
    /// How many updates of the app are live?
    case counts
    /// How many bytes do the audiences of the app's live updates have that are not paused?
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
        /// Those of them whose audience no index finds.
        package var unindexed: Int

        package init(live: Int, unindexed: Int) {
            self.live = live
            self.unindexed = unindexed
        }
    }

    package var isAppDeleted: Bool
    /// The questions that were answered. Without a value there is none in the store.
    package var answered: Set<PublishQuestion> = []
    package var earlier: Earlier?
    package var superseded: Update?
    package var counts = Counts(live: 0, unindexed: 0)
    package var audienceBytes = 0

    package init(isAppDeleted: Bool = false) { self.isAppDeleted = isAppDeleted }
}
