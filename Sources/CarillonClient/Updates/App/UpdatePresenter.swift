#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The user's answer to the question whether to commit the changes before a maintenance.
public enum CommitConsent: String, CaseIterable, Sendable {
    case given
    case declined
    case unanswered
}

/// The app's user interface, with the operations that updates need.
///
/// The library waits for each call to return, and drops no call. A dialog receives up to 100 steps of the progress of one
/// download.
public protocol UpdatePresenter: Sendable {
    /// Updates arrived; `counts` has the number of each kind.
    func received(_ counts: [String: Int]) async
    /// Updates cannot be received, or an update could not be processed. The same failure is reported once.
    func failed(_ failure: UpdateFailure) async
    /// Definitions wait until the user's changes are committed. It is called once for each update.
    func conflict(_ update: PushUpdate) async
    /// Asks the user whether to commit the changes before a maintenance. If `deadline` passes without an answer, the result is
    /// ``CommitConsent/unanswered``, and the task is cancelled. The task is also cancelled when the maintenance is over, its
    /// update is withdrawn, or another maintenance is announced: a later answer changes nothing.
    func mayCommit(before update: PushUpdate, deadline: Date) async -> CommitConsent
    /// Shows a popup without a dialog.
    func notify(_ popup: PushUpdate.Popup) async
    /// Shows a dialog, or a change of the present dialog. Only its button dismisses it: ``PopupDialog/press()``.
    func show(_ dialog: PopupDialog) async
    /// Dismisses a dialog: its button was pressed, its update was withdrawn, or the user signed out.
    func dismiss(_ dialog: PopupDialog.ID) async
    /// Opens the attachment of a popup.
    func open(_ attachment: PushUpdate.Attachment) async
    /// The process ended ten times while the app's code processed an update: its handler, the app's content, or this presenter.
    /// The update is not started again, and the client reports to the server that it failed permanently, with the reason
    /// `crashed`.
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

/// Why updates cannot be received or processed, with a sentence that helps to correct the fault.
public struct UpdateFailure: Error, Equatable, Sendable {
    /// The kind of failure.
    public enum Kind: Equatable, Sendable {
        /// The server could not be reached, or a proxy, a login page or another program responded in its place. Check the
        /// server's name and port.
        case unreachable
        /// The server rejects this device: its credential, or its app.
        case refused
        /// The server speaks another version of the protocol.
        case incompatible
        /// The server, or a proxy before it, sent data that the protocol does not allow.
        case protocolViolated
        /// The server rejects the parameters. They are not reported again until they change.
        case parametersRefused
        /// Content could not be applied, or an attachment could not be downloaded.
        case processing
        /// The durable storage cannot be written.
        case storage
    }

    public var kind: Kind
    /// A sentence for people: what is wrong, and what is valid. It contains no payload.
    public var message: String

    /// Makes a failure, for example in the tests of an app.
    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
