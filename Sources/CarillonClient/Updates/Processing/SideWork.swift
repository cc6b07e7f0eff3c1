import CarillonBasics

/// Work for one update that runs beside the processing of others: a question to the user, a dialog with its download, or the
/// app's handler.
///
/// It ends when the answer arrives, and when its update is finished, withdrawn or replaced. A later answer is recognised by its
/// identity, and changes nothing.
final class SideWork: Sendable {
    /// The number of the update in the inbox.
    let number: Int64
    /// Sent when the update is finished or withdrawn. Only the question, or the download, waits for it.
    let ended = Signal()

    init(number: Int64) { self.number = number }
}
