package import CarillonWire

/// What follows from the position with which a device polls.
package struct PollRuling: Equatable, Sendable {
    /// The position, if this store returned it, and was not replaced by an earlier backup since then.
    package var known: InboxPosition?
    /// Whether the server knows of a later position: the device, or its app's data, was restored to an earlier state.
    package var isAhead: Bool
    /// Whether the device can have lost what it processed, or the server can have lost what it knew of that.
    package var needsResync: Bool
    /// Whether updates that the device received are offered again.
    package var offersAgain: Bool

    package init(known: InboxPosition?, isAhead: Bool, needsResync: Bool, offersAgain: Bool) {
        self.known = known
        self.isAhead = isAhead
        self.needsResync = needsResync
        self.offersAgain = offersAgain
    }
}

package enum PollRules {
    /// - Parameters:
    ///   - position: Nil if the device polls without a position.
    ///   - binding: The binding of the device and its profile.
    ///   - receivedTo: The latest positions with which this binding polled.
    ///   - history: The history of the server.
    ///   - epoch: The present epoch of the home of the device.
    /// - Throws: ``ErrorCode/positionInvalid`` for a position of another binding.
    package static func rule(
        _ position: InboxPosition?, isOnSocket: Bool, binding: BindingSerial, receivedTo: ReceivedTo, history: Int64,
        epoch: Int64
    ) throws(Refusal) -> PollRuling {
        guard let position else {
            return PollRuling(known: nil, isAhead: false, needsResync: false, offersAgain: !isOnSocket)
        }
        guard position.history == history, PositionSource.epoch(of: position.place) <= epoch else {
            return PollRuling(known: nil, isAhead: false, needsResync: true, offersAgain: true)
        }
        guard position.binding == binding else {
            throw Refusal(.positionInvalid, "The position is of another user or profile of this device.")
        }
        let isAhead = position.isOfUpdates ? receivedTo.updates > position.place : receivedTo.all > position.place
        return PollRuling(known: position, isAhead: isAhead, needsResync: isAhead, offersAgain: isAhead)
    }
}

extension InboxPosition {
    package var receivedTo: ReceivedTo {
        isOfUpdates ? ReceivedTo(all: 0, updates: place) : ReceivedTo(all: place, updates: 0)
    }

    /// Returns what a device has received that polls with this position.
    ///
    /// - Parameter only: The kinds of envelopes for which it polls; nil for all.
    package func receipt(of only: Set<EnvelopeKind>?) -> InboxReceipt {
        InboxReceipt(upTo: place, of: only ?? (isOfUpdates ? EnvelopeKind.updates : nil))
    }
}

/// What a device received of its inbox: all envelopes up to a position, or those of some kinds.
package struct InboxReceipt: Equatable, Sendable {
    package var place: Int64
    /// Nil for all kinds.
    package var only: Set<EnvelopeKind>?

    package init(upTo place: Int64, of only: Set<EnvelopeKind>?) {
        self.place = place
        self.only = only
    }

    private func has(_ kind: EnvelopeKind) -> Bool { only?.contains(kind) ?? true }

    /// Returns the received ones of envelopes that wait.
    package func received(of waiting: [WaitingName]) -> [MessageID] {
        waiting.filter { $0.id.position <= place && has($0.kind) }.map(\.id)
    }

    /// Returns the received envelopes of a page of the inbox, and the position after which the next page begins; nil if no received
    /// envelope is behind the page.
    package func received(of page: InboxPage) -> (ids: [MessageID], next: Int64?) {
        let past = page.envelopes.prefix { $0.position <= place }
        let isCut = past.count < page.envelopes.count || page.isComplete
        return (past.filter { has($0.kind.number) }.map(\.id), isCut ? nil : past.last?.position)
    }
}
