/// The names of methods for error messages, as in the documentation.
extension NotificationFields {
    /// Returns the first method that set one of the members; nil if none did.
    func method(setting keys: Set<ContentKey>) -> String? {
        if keys.contains(.alert) {
            if let method = alert.method(onlyBeyondActivities: false) { return method }
            if plainAlert != nil { return "alert(_:)" }
        }
        if let sound, keys.contains(.sound) { return sound.isCritical ? "criticalSound(_:volume:)" : "sound(_:)" }
        if badge != nil, keys.contains(.badge) { return "badge(_:)" }
        if category != nil, keys.contains(.category) { return "category(_:)" }
        if threadID != nil, keys.contains(.threadID) { return "threadID(_:)" }
        if isMutableContent, keys.contains(.mutableContent) { return "mutableContent(_:)" }
        if targetContentID != nil, keys.contains(.targetContentID) { return "targetContentID(_:)" }
        if interruptionLevel != nil, keys.contains(.interruptionLevel) { return "interruptionLevel(_:)" }
        if relevanceScore != nil, keys.contains(.relevanceScore) { return "relevanceScore(_:)" }
        if filterCriteria != nil, keys.contains(.filterCriteria) { return "filterCriteria(_:)" }
        if urlArguments != nil, keys.contains(.urlArguments) { return "urlArguments(_:)" }
        if isContentAvailable, keys.contains(.contentAvailable) { return "contentAvailable()" }
        return nil
    }
}

extension AlertFields {
    /// - Parameter onlyBeyondActivities: Whether the title and the body are left out, which the alert of a Live Activity has.
    func method(onlyBeyondActivities: Bool) -> String? {
        if !onlyBeyondActivities {
            if let title { return title.isPlain ? "title(_:)" : "localizedTitle(_:arguments:)" }
            if let body { return body.isPlain ? "body(_:)" : "localizedBody(_:arguments:)" }
        }
        if let subtitle { return subtitle.isPlain ? "subtitle(_:)" : "localizedSubtitle(_:arguments:)" }
        if launchImage != nil { return "launchImage(_:)" }
        if action != nil { return "action(_:)" }
        if actionKey != nil { return "localizedAction(_:)" }
        if summaryArgument != nil || summaryArgumentCount != nil { return "summary(argument:count:)" }
        return nil
    }
}

extension AlertText {
    fileprivate var isPlain: Bool { if case .plain = self { true } else { false } }
}
