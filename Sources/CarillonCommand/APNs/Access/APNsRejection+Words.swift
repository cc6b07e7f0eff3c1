import CarillonAPNs

extension APNsRejection {
    /// The reason, or the status if there is no reason.
    var label: String { reason?.rawValue.escapedForTerminal() ?? "\(status) without a reason" }

    /// Status and reason.
    var words: String { description.escapedForTerminal() }

    /// Whether any other push of the same notification would be refused for the same reason.
    var concernsAll: Bool {
        if kind == .fixCredentials { return true }
        // A response without a reason comes from another program, and does not apply to other pushes.
        guard let reason else { return false }
        return [
            .badCollapseID, .badExpirationDate, .badMessageID, .badPriority, .badTopic, .duplicateHeaders, .invalidPushType,
            .missingTopic, .payloadEmpty, .payloadTooLarge, .badPath, .methodNotAllowed, .tooManyProviderTokenUpdates,
        ].contains(reason)
    }
}

extension APNsError {
    /// Whether the next push is likely to fail in the same way.
    var meansNoService: Bool {
        [.connectionFailed, .connectionLost, .timedOut, .notSent, .answerInvalid].contains(code)
    }
}
