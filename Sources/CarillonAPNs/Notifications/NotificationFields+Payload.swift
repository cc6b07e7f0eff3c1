import CarillonBasics

/// The payload as it is sent. A key that was not set is absent.
extension NotificationFields {
    var payload: [UInt8] {
        if let raw { return raw }
        var writer = JSONWriter()
        writer.object { writer in
            if let pushMagic {
                writer.member("mdm", pushMagic)
            } else {
                writer.member("aps", object: writeAps)
            }
            for field in custom {
                guard let value = field.value else { continue }
                writer.key(untrusted: field.key)
                writer.fragment(value)
            }
        }
        return writer.bytes
    }

    private func writeAps(_ writer: inout JSONWriter) {
        if let activity {
            writeActivity(activity, &writer)
        } else if let plainAlert, alert.isEmpty {
            writer.member("alert", plainAlert)
        } else if !alert.isEmpty {
            writer.member("alert", object: writeAlert)
        }
        writer.member("badge", badge.map(Int64.init))
        if let sound, activity == nil { writeSound(sound, &writer) }
        writer.member("thread-id", threadID)
        writer.member("category", category)
        if isContentAvailable { writer.member("content-available", 1 as Int64) }
        if isMutableContent { writer.member("mutable-content", 1 as Int64) }
        if isContentChanged { writer.member("content-changed", true) }
        writer.member("target-content-id", targetContentID)
        writer.member("interruption-level", interruptionLevel)
        writer.member("relevance-score", relevanceScore.flatMap { $0.isFinite ? $0 : nil })
        writer.member("filter-criteria", filterCriteria)
        writer.member("url-args", urlArguments)
        if let accessory {
            writer.member("encryptedData", accessory.encryptedData)
            writer.member("sessionIdentifier", accessory.sessionIdentifier)
            writer.member("keyID", accessory.keyID)
            writer.member("messageIndex", accessory.messageIndex)
        }
    }

    private func writeAlert(_ writer: inout JSONWriter) {
        write(alert.title, "title", "title-loc-key", "title-loc-args", &writer)
        write(alert.subtitle, "subtitle", "subtitle-loc-key", "subtitle-loc-args", &writer)
        write(alert.body ?? plainAlert.map(AlertText.plain), "body", "loc-key", "loc-args", &writer)
        writer.member("launch-image", alert.launchImage)
        writer.member("action", alert.action)
        writer.member("action-loc-key", alert.actionKey)
        writer.member("summary-arg", alert.summaryArgument)
        writer.member("summary-arg-count", alert.summaryArgumentCount.map(Int64.init))
    }

    private func write(
        _ text: AlertText?, _ plain: StaticString, _ key: StaticString, _ arguments: StaticString,
        _ writer: inout JSONWriter
    ) {
        switch text {
        case .plain(let text): writer.member(plain, text)
        case .localized(let name, let values):
            writer.member(key, name)
            writer.member(arguments, values)
        case nil: break
        }
    }

    private func writeSound(_ sound: SoundFields, _ writer: inout JSONWriter) {
        guard sound.isDictionary else { return writer.member("sound", sound.name) }
        writer.member("sound") { writer in
            if sound.isCritical { writer.member("critical", 1 as Int64) }
            writer.member("name", sound.name)
            writer.member("volume", sound.volume.flatMap { $0.isFinite ? $0 : nil })
        }
    }

    private func writeActivity(_ activity: ActivityFields, _ writer: inout JSONWriter) {
        writer.member("timestamp", activity.timestamp)
        writer.member("event", activity.event.rawValue)
        writer.member("content-state", activity.contentState)
        writer.member("attributes-type", activity.attributesType)
        writer.member("attributes", activity.attributes)
        writer.member("stale-date", activity.staleDate)
        writer.member("dismissal-date", activity.dismissalDate)
        switch activity.input {
        case .token: writer.member("input-push-token", 1 as Int64)
        case .channel(let id): writer.member("input-push-channel", id)
        case nil: break
        }
        guard alert.isNestable || plainAlert != nil || sound != nil else { return }
        writer.member("alert") { writer in
            writeNested(alert.title, "title", &writer)
            writeNested(alert.subtitle, "subtitle", &writer)
            writeNested(alert.body ?? plainAlert.map(AlertText.plain), "body", &writer)
            if let sound { writeSound(sound, &writer) }
        }
    }

    private func writeNested(_ text: AlertText?, _ name: StaticString, _ writer: inout JSONWriter) {
        switch text {
        case .plain(let text): writer.member(name, text)
        case .localized(let key, let arguments):
            writer.member(name) { writer in
                writer.member("loc-key", key)
                writer.member("loc-args", arguments)
            }
        case nil: break
        }
    }
}
