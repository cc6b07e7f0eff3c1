package import CarillonWire

/// Decides whether an update is published or resumed, which response a repeated request gets, and whether the limits of an app
/// allow the update.
///
/// The rules do not read the store: they receive facts, and request the missing facts.
package struct PublishRules: Sendable {
    package enum Refusal: Equatable, Sendable {
        /// Another request used the `Idempotency-Key` before.
        case keyReused
        case tooMany
        case tooManyUnindexed
        case tooManyAudienceBytes
        /// The update to supersede does not exist or has ended.
        case supersededUnknown
        case appGone
    }

    package enum Verdict: Equatable, Sendable {
        /// The caller must read this fact and decide again.
        case needs(PublishQuestion)
        case repeated(UpdateID)
        case refused(Refusal)
        case publishes
    }

    package enum ResumeVerdict: Equatable, Sendable {
        /// The caller must read the bytes of audiences and decide again.
        case needsAudienceBytes
        case refused(UpdateResumption)
        case resumes
    }

    package init() {}

    package func publish(_ request: UpdateRequest, knowing facts: PublishFacts) -> Verdict {
        guard !facts.isAppDeleted else { return .refused(.appGone) }
        if let idempotency = request.idempotency {
            guard facts.answered.contains(.earlier) else { return .needs(.earlier) }
            if let earlier = facts.earlier {
                return earlier.fingerprint == idempotency.fingerprint ? .repeated(earlier.id) : .refused(.keyReused)
            }
        }
        var superseded: Update?
        if request.definition.supersedes != nil {
            guard facts.answered.contains(.superseded) else { return .needs(.superseded) }
            guard let earlier = facts.superseded, earlier.status == .live else { return .refused(.supersededUnknown) }
            superseded = earlier
        }
        guard facts.answered.contains(.counts) else { return .needs(.counts) }
        let counts = facts.counts
        guard counts.live - (superseded == nil ? 0 : 1) < request.limits.live else { return .refused(.tooMany) }
        guard request.isIndexed || counts.unindexed < request.limits.unindexed else { return .refused(.tooManyUnindexed) }
        // The audiences of this number of updates are always below the limit.
        guard let audience = request.definition.audience,
            (counts.live + 1) * UpdateLimits.audienceBytes > request.limits.audienceBytes
        else { return .publishes }
        guard facts.answered.contains(.audienceBytes) else { return .needs(.audienceBytes) }
        let freed = superseded.map { $0.isPaused ? 0 : $0.audienceBytes } ?? 0
        let bytes = facts.audienceBytes - freed + audience.utf8.count
        return bytes > request.limits.audienceBytes ? .refused(.tooManyAudienceBytes) : .publishes
    }

    /// - Parameters:
    ///   - limit: The largest total size of the audiences of the app's live updates that are not paused, in bytes.
    ///   - isPaused: Whether the update is live and paused.
    ///   - audienceBytes: The present total size; nil if it was not read.
    package func resume(
        _ update: Update, audienceBytes limit: Int, isPaused: Bool, knowing audienceBytes: Int?
    ) -> ResumeVerdict {
        guard isPaused else { return .refused(.notPaused) }
        guard update.audience != nil else { return .resumes }
        guard let audienceBytes else { return .needsAudienceBytes }
        return audienceBytes + update.audienceBytes > limit ? .refused(.tooManyAudienceBytes) : .resumes
    }
}
