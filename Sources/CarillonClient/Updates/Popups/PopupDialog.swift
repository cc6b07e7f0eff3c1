/// A popup as it is to be shown.
public struct PopupDialog: Sendable, Identifiable, Equatable {
    /// Which one.
    public struct ID: Hashable, Sendable {
        let key: UpdateKey
    }

    /// Its one button.
    public enum Button: Equatable, Sendable {
        /// Confirms a popup without attachment.
        case ok
        /// The attachment is waited for. Cannot be pressed.
        case waiting
        /// How much of the attachment is there, from 0 to 1. Cannot be pressed.
        case downloading(Double)
        /// Confirms, and opens the attachment.
        case detail
        /// The attachment could not be downloaded: gives up for now, and the popup comes again.
        case close

        /// Whether pressing it does something.
        public var isEnabled: Bool {
            switch self {
            case .ok, .detail, .close: true
            case .waiting, .downloading: false
            }
        }
    }

    public let id: ID
    public let popup: PushUpdate.Popup
    public let button: Button
    private let onPress: @Sendable (ID) -> Void

    init(id: ID, popup: PushUpdate.Popup, button: Button, onPress: @escaping @Sendable (ID) -> Void) {
        self.id = id
        self.popup = popup
        self.button = button
        self.onPress = onPress
    }

    /// The user pressed the button. The dialog stays until ``UpdatePresenter/dismiss(_:)``, when what was pressed is durable; another
    /// press, or one of a button that waits, does nothing.
    public func press() { onPress(id) }

    public static func == (one: PopupDialog, other: PopupDialog) -> Bool {
        one.id == other.id && one.popup == other.popup && one.button == other.button
    }
}
