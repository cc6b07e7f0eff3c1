#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What the user said when asked whether to commit before a maintenance.
public enum CommitConsent: String, CaseIterable, Sendable {
    case given
    case declined
    case unanswered
}

/// The app's user interface, as updates need it.
///
/// There is no stream of updates: the library waits for each call to return, and no call is dropped. Of the progress of one download a dialog
/// is shown at most 100 steps.
public protocol UpdatePresenter: Sendable {
    /// Updates came: how many of each kind.
    func received(_ counts: [String: Int]) async
    /// Something keeps updates from the device, or one could not be processed. The same is reported once.
    func failed(_ failure: UpdateFailure) async
    /// Definitions wait until the user's changes are committed; reported once for each update.
    func conflict(_ update: PushUpdate) async
    /// Asks the user whether to commit his changes before a maintenance. What is not answered by `deadline` is
    /// ``CommitConsent/unanswered``; the task is cancelled then. The task is also cancelled when the maintenance is over, its update is withdrawn,
    /// or another maintenance is announced: a later answer changes nothing.
    func mayCommit(before update: PushUpdate, deadline: Date) async -> CommitConsent
    /// A popup that raises no dialog.
    func notify(_ popup: PushUpdate.Popup) async
    /// Shows a dialog, or what changed in the one that is shown. Only its button dismisses it: ``PopupDialog/press()``.
    func show(_ dialog: PopupDialog) async
    /// The dialog goes: its button was pressed, its update was withdrawn, or the user signed out.
    func dismiss(_ dialog: PopupDialog.ID) async
    /// Opens what a popup brought along.
    func open(_ attachment: PushUpdate.Attachment) async
    /// The process ended ten times while the app's code processed an update: its handler, the app's content, or this presenter. The update is not
    /// started again, and the server is notified that it failed for good, with the reason `crashed`.
    func crashed(_ update: PushUpdate) async
}

extension UpdatePresenter {
    /// Calls ``failed(_:)`` with ``UpdateFailure/Kind/processing``.
    public func crashed(_ update: PushUpdate) async {
        await failed(
            UpdateFailure(
                .processing,
                "The app ended \(HandlerStarts.most) times while it processed the update \(update.id). The update is not started again."
            ))
    }
}

/// What keeps updates from the device, and what to mend.
public struct UpdateFailure: Error, Equatable, Sendable {
    /// What kind of failure it is.
    public enum Kind: Equatable, Sendable {
        /// The server was not reached, or a proxy, a login page or another program answered in its place: is the server's name right,
        /// and the port?
        case unreachable
        /// The server refuses this device: its credential, or its app.
        case refused
        /// The server speaks another version of the protocol.
        case incompatible
        /// The server, or something before it, said what the protocol does not allow.
        case protocolViolated
        /// The server does not take the parameters as they are: they are left out until they change.
        case parametersRefused
        /// Content could not be applied, or an attachment not downloaded.
        case processing
        /// The durable storage cannot be written.
        case storage
    }

    public var kind: Kind
    /// What was wrong, and what would be right. It holds no payload.
    public var message: String

    /// Makes a failure, for instance in the tests of an app.
    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
