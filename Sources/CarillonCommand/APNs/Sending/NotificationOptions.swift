import ArgumentParser
import CarillonAPNs
import Foundation

/// The content of the notification, and its delivery options.
struct NotificationOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The alert's title.", valueName: "text")) var title: String?
    @Option(help: ArgumentHelp("The line below the title.", valueName: "text")) var subtitle: String?
    @Option(help: ArgumentHelp("The alert's text.", valueName: "text")) var body: String?
    @Option(help: ArgumentHelp("The number on the app's icon; 0 removes it.", valueName: "n")) var badge: Int?
    @Option(help: ArgumentHelp("A sound file of the app, or \"default\".", valueName: "name")) var sound: String?
    @Option(help: ArgumentHelp("The category whose actions the notification offers.", valueName: "name")) var category:
        String?
    @Option(help: ArgumentHelp("The thread that groups notifications.", valueName: "id")) var threadId: String?
    @Option(help: ArgumentHelp("passive, active, time-sensitive or critical.", valueName: "level"))
    var interruptionLevel: String?
    @Flag(help: "Let the app's service extension change the notification.") var mutableContent = false
    @Flag(help: "Let the app run in the background as well; the priority stays as it is.") var contentAvailable = false
    @Flag(help: "Wake the app and show nothing: push type background, with priority 5.") var background = false
    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp(
            "A key of the app, with JSON as its value: kettle=7, or 'name=\"Anna\"'.", valueName: "key=json"))
    var custom: [String] = []
    @Option(
        help: ArgumentHelp(
            "Send the JSON of this file unchanged, in place of the options above; \"-\" is standard input.",
            valueName: "file"))
    var payload: String?
    @Option(
        help: ArgumentHelp(
            """
            alert, background, voip, pushtotalk, complication, fileprovider, location, liveactivity, controls, widgets, \
            or with --payload also accessory and mdm. Default: the type that the other options need, in most cases alert.
            """, valueName: "type"))
    var pushType: String?
    @Option(help: ArgumentHelp("The notification replaces an earlier one with the same ID on the device.", valueName: "id"))
    var collapseId: String?
    @Option(
        help: ArgumentHelp(
            "How long the service stores the push for an offline device, in seconds; 0 means one attempt. Default: Apple decides.",
            valueName: "seconds"))
    var expires: Int64?
    @Option(
        help: ArgumentHelp(
            "10: at once; 5: when power allows; 1: never wakes the device. Default: the priority of the push type.",
            valueName: "n"))
    var priority: Int?
    @Flag(help: "Send pushes that break a rule of the push type, such as content that it ignores.") var withoutChecks = false

    @OptionGroup(title: "Live activities") var activity: LiveActivityOptions

    func validate() throws {
        if let interruptionLevel, !["passive", "active", "time-sensitive", "critical"].contains(interruptionLevel) {
            throw ValidationError("--interruption-level must be passive, active, time-sensitive or critical.")
        }
        if let priority, ![1, 5, 10].contains(priority) { throw ValidationError("--priority must be 1, 5 or 10.") }
        if let expires, !(0...3_153_600_000).contains(expires) {
            throw ValidationError("--expires must be a number of seconds from now, or 0.")
        }
        if let badge, badge < 0 { throw ValidationError("--badge must be 0 or more.") }
        if background, let pushType, pushType != "background" {
            throw ValidationError("--background needs push type background, not \(pushType).")
        }
        if activity.event != nil, background || (pushType ?? "liveactivity") != "liveactivity" {
            throw ValidationError("--live-activity needs push type liveactivity; leave out --push-type.")
        }
        if payload != nil, saysContent || activity.event != nil {
            throw ValidationError(
                "--payload is the complete content; leave out --title, --custom and the other options of the content.")
        }
        try checkContent()
    }

    /// Checks the requirements of the push type, as far as the options show them.
    private func checkContent() throws {
        guard payload == nil else { return }
        switch type {
        case .liveActivity where activity.event == nil:
            throw ValidationError("Push type liveactivity needs --live-activity start|update|end, or --payload FILE.")
        case .liveActivity:
            if activity.event == .start, !hasAlert, !withoutChecks {
                throw ValidationError("Starting a Live Activity needs an alert: --title or --body.")
            }
        case .mdm, .accessory: throw ValidationError("Push type \(type) needs --payload FILE.")
        case .alert:
            guard hasAlert || badge != nil || sound != nil || contentAvailable || !custom.isEmpty else {
                throw ValidationError(
                    "There is nothing to send; add --title, --body, --badge, --sound, --background or --payload FILE.")
            }
        case .background where !withoutChecks:
            guard !hasAlert, badge == nil, sound == nil else {
                throw ValidationError(
                    "A background push shows nothing; leave out --background, or the alert, badge and sound.")
            }
            if let priority, priority != 5 { throw ValidationError("A background push must have --priority 5.") }
        default: break
        }
        if !withoutChecks, let option = ignoredOption {
            throw ValidationError("Push type \(type) ignores \(option); leave it out, or add --without-checks.")
        }
        if type == .fileProvider, !withoutChecks, !custom.contains(where: { $0.hasPrefix("container-identifier=") }) {
            throw ValidationError(
                "Push type fileprovider needs --custom 'container-identifier=\"ID\"', or --payload FILE.")
        }
    }

    /// The first option that the push type ignores. The options of a background push were checked before.
    private var ignoredOption: String? {
        let texts = [("--title", title != nil), ("--body", body != nil), ("--sound", sound != nil)]
        let others = [
            ("--subtitle", subtitle != nil), ("--badge", badge != nil), ("--category", category != nil),
            ("--thread-id", threadId != nil), ("--interruption-level", interruptionLevel != nil),
            ("--mutable-content", mutableContent),
        ]
        let wake = [("--content-available", contentAvailable)]
        let ignored: [(String, Bool)] =
            switch type {
            case .liveActivity: others + wake
            case .widgets, .controls, .fileProvider: texts + others + wake
            default: []
            }
        return ignored.first { _, isGiven in isGiven }?.0
    }

    private var hasAlert: Bool { title != nil || subtitle != nil || body != nil }

    private var saysContent: Bool {
        hasAlert || badge != nil || sound != nil || category != nil || threadId != nil || interruptionLevel != nil
            || mutableContent || contentAvailable || !custom.isEmpty || (background && payload == nil)
    }

    var type: APNsPushType {
        if activity.event != nil { return .liveActivity }
        if background { return .background }
        guard let pushType else { return .alert }
        return APNsPushType.known.first { $0.description == pushType } ?? APNsPushType(pushType)
    }

    /// Returns the notification. All values that the service would derive from the push type are set.
    /// - Parameter now: The time from which `--expires` counts.
    func notification(now: Date) throws -> APNsNotification {
        var notification = try content(now: now)
        if let priority { notification = notification.priority(APNsPriority(rawValue: priority)) }
        if let collapseId { notification = notification.collapseID(collapseId) }
        if let expiration = expiration(now: now) { notification = notification.expiration(expiration) }
        return withoutChecks ? notification.withoutChecks() : notification
    }

    private func expiration(now: Date) -> APNsExpiration? {
        expires.map { $0 == 0 ? .immediately : .at(now.addingTimeInterval(Double($0))) }
    }

    private func content(now: Date) throws -> APNsNotification {
        if let payload { return .raw(try PayloadFile.read(payload), type: type) }
        var notification = try activity.notification(now: now) ?? base
        if let title { notification = notification.title(title) }
        if let subtitle { notification = notification.subtitle(subtitle) }
        if let body { notification = notification.body(body) }
        if let badge { notification = notification.badge(badge) }
        if let sound { notification = notification.sound(sound) }
        if let category { notification = notification.category(category) }
        if let threadId { notification = notification.threadID(threadId) }
        if let interruptionLevel {
            notification = notification.interruptionLevel(APNsInterruptionLevel(rawValue: interruptionLevel))
        }
        if mutableContent { notification = notification.mutableContent() }
        if contentAvailable { notification = notification.contentAvailable() }
        for text in custom {
            let field = try CustomField(text)
            notification = notification.custom(field.key, json: field.json)
        }
        return notification
    }

    private var base: APNsNotification {
        switch type {
        case .background: .background
        case .controls: .controls
        case .widgets: .widgets
        default: APNsNotification(type: type)
        }
    }
}
