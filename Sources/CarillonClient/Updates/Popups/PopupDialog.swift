/// The dialog of a popup.
public struct PopupDialog: Sendable, Identifiable, Equatable {
    /// The identity of a dialog.
    public struct ID: Hashable, Sendable {
        let key: UpdateKey
    }

    /// The state of the dialog's one button.
    public enum Button: Equatable, Sendable {
        /// Confirms a popup without attachment.
        case ok
        /// The attachment waits for its download. The button cannot be pressed.
        case waiting
        /// The downloaded part of the attachment, from 0 to 1. The button cannot be pressed.
        case downloading(Double)
        /// Confirms, and opens the attachment.
        case detail
        /// The attachment could not be downloaded. The button closes the dialog for now, and the popup is delivered again.
        case close

        /// Whether the button can be pressed.
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

    /// Reports that the user pressed the button. The dialog stays until ``UpdatePresenter/dismiss(_:)``, when the result is
    /// durable. A second press, and a press of a disabled button, do nothing.
    public func press() { onPress(id) }

    public static func == (one: PopupDialog, other: PopupDialog) -> Bool {
        one.id == other.id && one.popup == other.popup && one.button == other.button
    }
}
