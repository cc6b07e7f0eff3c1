import ArgumentParser
import CarillonAPNs
import CarillonBasics
import Foundation

/// The options for the start, an update or the end of a Live Activity.
struct LiveActivityOptions: ParsableArguments {
    enum Event: String, ExpressibleByArgument, CaseIterable {
        case start, update, end
    }

    @Option(name: .customLong("live-activity"), help: ArgumentHelp("What happens to the activity.", valueName: "event"))
    var event: Event?
    @Option(
        help: ArgumentHelp(
            "The activity's state: a JSON object, or a file with one. Required for start and update.", valueName: "json"))
    var contentState: String?
    @Option(help: ArgumentHelp("For a start: the name of the ActivityAttributes type.", valueName: "name"))
    var attributesType: String?
    @Option(help: ArgumentHelp("For a start: its values, a JSON object or a file with one.", valueName: "json"))
    var attributes: String?
    @Flag(help: "For a start: the device creates a token for the updates (iOS 18).")
    var inputPushToken = false
    @Option(
        help: ArgumentHelp("For a start: the activity listens to this broadcast channel (iOS 18).", valueName: "channel"))
    var inputPushChannel: String?
    @Option(
        help: ArgumentHelp(
            "The time at which the state becomes stale: +SECONDS from now, seconds since 1970, or 2030-01-31T12:00:00Z.",
            valueName: "time"))
    var staleAt: TimeArgument?
    @Option(
        help: ArgumentHelp(
            "For an end: the time at which the activity leaves the lock screen, in the form of --stale-at.",
            valueName: "time"))
    var dismissAt: TimeArgument?

    func validate() throws {
        switch event {
        case nil:
            guard contentState == nil, staleAt == nil, !saysStart, dismissAt == nil else {
                throw ValidationError(
                    "--content-state and the other options of a Live Activity need --live-activity start|update|end.")
            }
        case .start:
            guard contentState != nil, attributesType != nil, attributes != nil else {
                throw ValidationError("A start needs --content-state, --attributes-type and --attributes.")
            }
            guard !inputPushToken || inputPushChannel == nil else {
                throw ValidationError("Use either --input-push-token or --input-push-channel.")
            }
        case .update:
            guard contentState != nil else { throw ValidationError("An update needs --content-state.") }
            fallthrough
        case .end:
            guard !saysStart else {
                throw ValidationError(
                    "--attributes-type, --attributes, --input-push-token and --input-push-channel need --live-activity start."
                )
            }
        }
        if dismissAt != nil, event != .end { throw ValidationError("--dismiss-at needs --live-activity end.") }
    }

    private var saysStart: Bool {
        attributesType != nil || attributes != nil || inputPushToken || inputPushChannel != nil
    }

    /// Returns the notification; nil if no Live Activity was requested.
    func notification(now: Date) throws -> APNsNotification? {
        guard let event else { return nil }
        let state = try contentState.map { try Self.object($0, "--content-state") }
        var notification: APNsNotification
        switch (event, state) {
        case (.start, let state):
            notification = .startLiveActivity(
                attributesType: attributesType ?? "",
                attributes: try attributes.map { try Self.object($0, "--attributes") } ?? .object([]),
                contentState: state ?? .object([]),
                updates: inputPushToken ? .token : inputPushChannel.map(APNsActivityUpdates.channel), timestamp: now)
        case (.update, let state):
            notification = .updateLiveActivity(contentState: state ?? .object([]), timestamp: now)
        case (.end, let state?): notification = .endLiveActivity(contentState: state, timestamp: now)
        case (.end, nil): notification = .endLiveActivity(timestamp: now)
        }
        if let staleAt { notification = notification.staleDate(staleAt.date(from: now)) }
        if let dismissAt { notification = notification.dismissalDate(dismissAt.date(from: now)) }
        return notification
    }

    /// Reads JSON if the text begins with a brace. Otherwise the text is the name of a file with JSON.
    private static func object(_ text: String, _ option: String) throws -> JSONValue {
        let isInline = text.first { !$0.isWhitespace } == "{"
        let data = isInline ? Data(text.utf8) : try InputFile.bytes(text)
        guard let value = JSONValue(parsing: Array(data)), case .object = value else {
            let code = isInline ? ExitCode.validationFailure : ExitStatus.refused
            if let fault = CommandFault.numberOutOfRange(in: data, of: isInline ? option : text, code) { throw fault }
            throw CommandFault(
                code,
                "\(option) must be a JSON object, or a file with one\(isInline ? "" : ", not \(text)")")
        }
        return value
    }
}

/// The value of a time option: `+600` from now, seconds since 1970, or a date in ISO 8601.
enum TimeArgument: ExpressibleByArgument, Hashable {
    case fromNow(Double)
    case at(Date)

    init?(argument: String) {
        if argument.hasPrefix("+"), let seconds = UInt32(argument.dropFirst()) {
            self = .fromNow(Double(seconds))
        } else if let seconds = UInt32(argument) {
            self = .at(Date(timeIntervalSince1970: Double(seconds)))
        } else if let date = try? Date(argument, strategy: .iso8601) {
            self = .at(date)
        } else {
            return nil
        }
    }

    func date(from now: Date) -> Date {
        switch self {
        case .fromNow(let seconds): now.addingTimeInterval(seconds)
        case .at(let date): date
        }
    }
}
