import CarillonBasics

/// What is under way for one update beside the others: a question to the user, a dialog with its download, or the app's handler.
///
/// It ends when it was answered, and when its update is over, taken back or replaced. An answer that comes later is recognised by its identity,
/// and changes nothing.
final class SideWork: Sendable {
    /// The number of the update in the inbox.
    let number: Int64
    /// Sent when the update goes. Awaited by the question, or by the download, alone.
    let ended = Signal()

    init(number: Int64) { self.number = number }
}
