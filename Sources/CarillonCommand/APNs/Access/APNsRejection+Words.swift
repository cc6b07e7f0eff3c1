import CarillonAPNs

extension APNsRejection {
    /// The reason, or the status where there is none.
    var label: String { reason?.rawValue.escapedForTerminal() ?? "\(status) without a reason" }

    /// Status and reason.
    var words: String { description.escapedForTerminal() }

    /// Whether every other push of the same notification would be refused for the same reason.
    var concernsAll: Bool {
        if kind == .fixCredentials { return true }
        // What has no reason is another program's answer, and says nothing about other pushes.
        guard let reason else { return false }
        return [
            .badCollapseID, .badExpirationDate, .badMessageID, .badPriority, .badTopic, .duplicateHeaders, .invalidPushType,
            .missingTopic, .payloadEmpty, .payloadTooLarge, .badPath, .methodNotAllowed, .tooManyProviderTokenUpdates,
        ].contains(reason)
    }
}

extension APNsError {
    /// Whether the next push is likely to end the same way.
    var meansNoService: Bool {
        [.connectionFailed, .connectionLost, .timedOut, .notSent, .answerInvalid].contains(code)
    }
}
