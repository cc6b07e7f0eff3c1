import CarillonBasics
package import CarillonWire

/// Shortens the texts of a notification so that its payload fits the limit of the vendor's push service.
///
/// The longest of title, subtitle, body and arguments is cut at a boundary of a grapheme cluster, and ends with "…". Texts of the
/// same length are cut to the same length.
package enum NotificationShortening {
    package enum Fit: Equatable, Sendable {
        case whole
        /// The notification fits with shorter texts.
        case shortened
        /// The notification is too large even with the shortest texts.
        case tooLarge
    }

    /// Returns the bytes of a notification in the form that the vendor's push service receives.
    package typealias Size = (FiredNotification) -> Int

    private static let ellipsis = "…"
    private static let textNames: Set = ["title", "subtitle", "body"]
    private static let argumentNames: Set = ["titleArguments", "subtitleArguments", "bodyArguments"]

    package static func fit(_ fired: FiredNotification, within limit: Int, _ size: Size) -> Fit {
        if size(fired) <= limit { return .whole }
        return size(cut(fired, to: ellipsis.utf8.count)) <= limit ? .shortened : .tooLarge
    }

    /// Returns the notification with texts that are as long as the limit allows. Returns it unchanged if it fits or cannot fit.
    package static func shortened(_ fired: FiredNotification, within limit: Int, _ size: Size) -> FiredNotification {
        guard fit(fired, within: limit, size) == .shortened else { return fired }
        var (fits, exceeds) = (ellipsis.utf8.count, longest(of: fired))
        while exceeds - fits > 1 {
            let middle = (fits + exceeds) / 2
            if size(cut(fired, to: middle)) <= limit { fits = middle } else { exceeds = middle }
        }
        return cut(fired, to: fits)
    }

    /// Returns the bytes of the longest text of the notification.
    private static func longest(of fired: FiredNotification) -> Int {
        var longest = 0
        _ = mapTexts(of: fired) { text in
            longest = max(longest, text.utf8.count)
            return text
        }
        return longest
    }

    private static func cut(_ fired: FiredNotification, to bytes: Int) -> FiredNotification {
        mapTexts(of: fired) { cut($0, to: bytes) }
    }

    private static func cut(_ text: String, to bytes: Int) -> String {
        guard text.utf8.count > bytes else { return text }
        var room = bytes - ellipsis.utf8.count
        var end = text.startIndex
        while end < text.endIndex {
            room -= text[end].utf8.count
            guard room >= 0 else { break }
            end = text.index(after: end)
        }
        return text[..<end] + ellipsis
    }

    private static func mapTexts(
        of fired: FiredNotification, _ change: (String) -> String
    ) -> FiredNotification {
        guard case .object(let members) = fired.notification else { return fired }
        var fired = fired
        fired.notification = .object(
            members.map { member in
                switch member.value {
                case .string(let text) where textNames.contains(member.name):
                    return .init(name: member.name, value: .string(change(text)))
                case .array(let values) where argumentNames.contains(member.name):
                    return .init(
                        name: member.name,
                        value: .array(
                            values.map { value in
                                if case .string(let text) = value { .string(change(text)) } else { value }
                            }))
                default: return member
                }
            })
        return fired
    }
}
