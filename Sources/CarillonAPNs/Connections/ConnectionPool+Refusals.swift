/// Decides how a rejection of one push affects its connection and the waiting pushes.
extension ConnectionPool {
    /// The part of a rejection that also applies to waiting pushes.
    enum SharedRefusal {
        case credentials
        case topic(String)
    }

    /// Sends a rejected push once more, if a new connection or a newer token can change the response.
    ///
    /// - Returns: Whether the push is sent again. Otherwise the rejection is final.
    func isSentAgain(
        _ push: PushID, _ submission: Submission, after rejection: APNsRejection, on link: Link, _ now: Moment
    ) -> Bool {
        switch rejection.reason {
        case .expiredProviderToken, .invalidProviderToken:
            guard submission.renewals == 0, let token = submission.token, let tokens, tokens.source.refused(token, now)
            else { return false }
            // For a while, APNs does not check a token again on a connection on which it refused it.
            retire(link, "The service refused its provider token.")
            lastReplacement = now
            submission.renewals += 1
            again(push)
            return true
        case .tooManyProviderTokenUpdates:
            guard submission.renewals == 0,
                case .elsewhere(let number, _) = tokenFreshness.refused(
                    on: link.id.number, newest: machine.newestConnection, now)
            else { return false }
            retire(link, "The service counted too many provider tokens on the connection.")
            lastReplacement = now
            submission.renewals += 1
            again(push, after: number)
            return true
        case .unrelatedKeyIDInToken, .topicDisallowed:
            // A connection knows only the APNs topics and keys that existed at its first push. The response on a new
            // connection is final.
            guard submission.moves == 0, link.machine.isProven || !link.isFresh(for: submission),
                case .elsewhere(let number, let retires) = freshness.refused(
                    on: link.id.number, newest: machine.newestConnection, now)
            else { return false }
            if retires { retire(link, "The connection may not know a newer topic or key.") }
            submission.moves += 1
            again(push, after: number)
            return true
        default:
            return false
        }
    }

    /// Replaces all connections after a rejection that APNs repeats on a connection, at most once a minute.
    func replaceConnections(for rejection: APNsRejection, _ now: Moment) {
        let why: String
        switch rejection.reason {
        case .expiredProviderToken: why = "The provider token expired on the connection."
        case .tooManyProviderTokenUpdates: why = "The service refuses its provider tokens."
        default: return
        }
        if let lastReplacement, now - lastReplacement < .seconds(60) { return }
        lastReplacement = now
        for link in links where link.channel != nil { retire(link, why) }
    }

    /// Retires a connection that rejects push credentials which APNs accepts on another connection. The waiting pushes use
    /// the other connection.
    ///
    /// - Returns: Whether there is such a connection. The rejection then concerns no other push.
    func isTakenElsewhere(
        _ rejection: APNsRejection, of submission: Submission, on link: Link, _ now: Moment
    ) -> Bool {
        guard rejection.concernsCredentials, link.credentialsEpoch == credentialsEpoch else { return false }
        let isTaken = links.contains { other in
            guard other !== link, other.credentialsEpoch == credentialsEpoch, other.machine.phase == .open else {
                return false
            }
            guard let token = submission.token else { return other.machine.isProven }
            return other.tokens.isTaken(token)
        }
        guard isTaken, link.machine.phase == .open else { return isTaken }
        // The connection counts as lost, so that connections are not opened in a loop if APNs rejects the credentials on
        // every new one.
        report(link, now)
        machine.draining(link.id, now, isRetired: false)
        retire(link, "The service refused credentials on the connection that it accepts on another connection.")
        return true
    }

    /// Returns the scope of a rejection. Returns nil if the rejection applies to one push only, or if other pushes use
    /// another connection, token or key.
    func sharedRefusal(
        _ rejection: APNsRejection, of submission: Submission, on link: Link, _ now: Moment
    ) -> SharedRefusal? {
        // A rejection is also valid if APNs ended the connection in the same read.
        guard link.credentialsEpoch == credentialsEpoch else { return nil }
        if rejection.concernsCredentials {
            if let tokens {
                guard let token = submission.token, tokens.source.isCurrent(token, now) else { return nil }
            }
            return .credentials
        }
        guard rejection.reason == .topicDisallowed, let topic = submission.topic else { return nil }
        // The connection is new enough for this push; otherwise the push would have been sent again.
        return .topic(topic)
    }

    /// Ends the waiting pushes that would be rejected like an earlier push. A push that may have been processed is not ended:
    /// it is sent again to receive its response.
    func endRefused() {
        guard !refusals.isEmpty else { return }
        let refusals = refusals
        self.refusals = SharedRefusals()
        let waiting = pushes.pushes { submission in
            guard case .queued = submission.place, submission.lostCount == 0 else { return false }
            return refusals.answer(topic: submission.topic) != nil
        }
        for push in waiting {
            guard let answer = refusals.answer(topic: pushes[push]?.topic) else { continue }
            machine.removed(push)
            finish(push, .success(answer))
        }
    }
}

extension APNsRejection {
    /// Whether every push with the same push credentials would be rejected for the same reason.
    ///
    /// `TooManyProviderTokenUpdates` is not such a reason: APNs counts tokens for a while, and the retry policy of each push
    /// decides.
    var concernsCredentials: Bool {
        switch reason {
        case .badCertificate, .badCertificateEnvironment, .expiredProviderToken, .invalidProviderToken,
            .missingProviderToken, .badEnvironmentKeyIDInToken, .badEnvironmentKeyInToken:
            true
        default: false
        }
    }
}
