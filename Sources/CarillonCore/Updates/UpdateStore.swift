package import CarillonWire

/// Keeps updates, the bindings that they are for, and what became of each at each.
///
/// Each change is one transaction: a concurrent call sees all of it or nothing. Concurrent changes of one row follow each other, and each
/// decides on what the change before it left. A read sees one moment of the store. Every method throws ``StoreFault`` if the store
/// cannot be read or written; a change that throws is not made. A limit on the length of a list returns the first rows of its order.
///
/// A change that names a revision of a binding is made only while the binding is of that revision and has not ended.
///
/// Methods with a set of shards return and change nothing of devices in other shards.
package protocol UpdateStore: Sendable {
    // MARK: Updates

    /// Returns the mark of the present state of an app's log; nil if there is no such app.
    func logMark(of app: AppSerial) async throws -> UpdateLogMark?
    /// Writes an update with an audit entry at the end of its app's log, and ends the update that it supersedes.
    ///
    /// Updates become visible in the order of their numbers: a reader that has seen one never sees an earlier one appear. Of
    /// concurrent requests with one `Idempotency-Key` one is made, and concurrent requests do not exceed the limits of the app. A
    /// repetition is answered before limits are compared. A refusal changes nothing.
    func publishUpdate(_ request: UpdateRequest, at now: Timestamp) async throws -> UpdatePut
    /// Returns the live updates of an app that are not paused, in ascending order.
    func liveUpdates(of app: AppSerial) async throws -> [Update]
    /// Returns an update of an app, live or ended; nil if it is another app's or forgotten.
    func update(_ id: UpdateID, of app: AppSerial) async throws -> Update?
    /// Returns a page of an app's updates, from the latest on.
    func updates(of app: AppSerial, _ filter: UpdateFilter, before: UpdateSerial?, limit: Int) async throws -> [Update]
    /// Returns the latest content of an app that expired, also if it is forgotten; zero without one.
    func lastExpiredContent(of app: AppSerial) async throws -> UpdateSerial
    /// Returns the content of an app after a place that expired, ascending; nil if some of it is forgotten, or it is more than the limit.
    func expiredContent(of app: AppSerial, after place: UpdateSerial, limit: Int) async throws -> [Update]?
    /// Ends a live update and writes an audit entry. The update is not sent to any device after that. Returns whether this call ended it.
    func withdrawUpdate(_ update: Update, by key: KeyID, at now: Timestamp) async throws -> Bool
    /// Ends the pause of a live update and writes an audit entry: every binding is evaluated for the log anew. Its completions are made due
    /// by earlier transactions, which nobody sees while it is paused.
    ///
    /// - Parameter limit: The bytes of the audiences of the app's live updates that are not paused.
    func resumeUpdate(
        _ update: Update, by key: KeyID, audienceBytes limit: Int, at now: Timestamp
    ) async throws -> UpdateResumption
    /// Ends live updates whose expiry time is reached, paused ones included. Returns the updates that this call ended.
    func endExpiredUpdates(at now: Timestamp, limit: Int) async throws -> [EndedUpdate]
    /// Forgets the oldest of an app's ended updates beyond a number, and updates that ended before a moment, with their completions.
    /// An update stays while a completion of it is not final. Returns whether nothing is left to forget; each call forgets a part.
    ///
    /// - Parameter retention: Nil forgets only what is beyond the number.
    func forgetUpdates(_ limits: UpdateLimits, by retention: RetentionTime?, limit: Int) async throws -> Bool
    /// Returns the number of completions of an update in each state.
    func counts(of update: UpdateSerial) async throws -> [CompletionMachine.State: Int]
    /// Returns a page of an update's completions, in the order of their bindings and entries.
    func completions(
        of update: UpdateSerial, in state: CompletionMachine.State?, after: CompletionKey?, limit: Int
    ) async throws -> [DeviceCompletion]
    /// Returns the completions of an update at one device, over all its users and profiles.
    func completions(of update: UpdateSerial, at device: DeviceID) async throws -> [Completion]

    // MARK: Bindings

    /// Returns the binding of a device with its present user and a profile. Makes it if there is none; another binding of the device ends
    /// in the same transaction. A binding that ended begins again with a later revision, and what the device left unfinished is due.
    ///
    /// Concurrent calls make one binding. Nil if there is no such device, its app was deleted, or it has
    /// ``UpdateBinding/mostOfDevice`` bindings of which none can be removed; then nothing is changed.
    func binding(of device: DeviceSerial, profile: String, at now: Timestamp) async throws -> UpdateBinding?
    /// Returns the last binding of a device; nil if it ended or there is none.
    func presentBinding(of device: DeviceSerial) async throws -> UpdateBinding?
    /// Writes parameters, location and kinds of a binding with the next revision, if its revision is the one that is given: every update is
    /// evaluated for it anew. Nil if the revision is another one or the binding ended. Of concurrent changes of one revision one is made.
    ///
    /// - Parameter hasOtherKinds: Updates of kinds that the binding does not process any more become unsupported and leave the inbox
    ///   in the same transaction. Unsupported updates of its new kinds are due.
    func change(_ binding: UpdateBinding, hasOtherKinds: Bool, at now: Timestamp) async throws -> BindingChange?
    /// Returns the number of an app's bindings that did not end.
    func bindingCount(of app: AppSerial) async throws -> Int
    /// Returns an app's bindings that did not end, in the order of their numbers.
    func bindings(of app: AppSerial, after: BindingSerial, limit: Int) async throws -> [AppBinding]
    /// Forgets locations that were set by a moment. Their bindings have the next revision, and updates are evaluated for them anew.
    func forgetLocations(in shards: ShardSet, before moment: Timestamp, limit: Int) async throws
    /// Returns ended bindings of which something is left to release.
    func bindingsToRelease(in shards: ShardSet, limit: Int) async throws -> [ReleasedBinding]
    /// Ends some completions of an ended binding that are not final (``CompletionMachine/State/gone``).
    ///
    /// - Returns: The envelopes that are still in the inbox, which the caller takes out; nil if nothing is left, or the binding began again.
    func release(_ binding: BindingSerial, limit: Int, at now: Timestamp) async throws -> [MessageID]?

    /// Reads a device that polls, and then its binding and the names of its waiting envelopes as of one moment. Nil if there
    /// is no such device. The inbox is not read then.
    func poll(of name: DeviceName, at now: Timestamp) async throws -> PollVisit?

    // MARK: Waking

    /// Returns live updates for which sleeping devices are still to be woken: the first of each app.
    func wakingUpdates(limit: Int) async throws -> [WakingUpdate]
    /// Returns an app's bindings whose devices have a push token and are not suspended, in the order of their numbers.
    func bindingsToWake(of app: AppSerial, after: BindingSerial, limit: Int) async throws -> [AppBinding]
    /// Notes that the devices of bindings up to a place were woken; nil: of all. An update that is done stays done.
    func woke(_ update: UpdateSerial, to place: BindingSerial?) async throws

    // MARK: Completions

    /// Returns the last entry of each of these updates at a binding, in their order; updates without one are left out.
    func completions(of binding: BindingSerial, _ updates: [UpdateSerial]) async throws -> [Completion]
    /// Returns a binding that did not end, and the last entry of each live update after its place, ascending, as of one
    /// moment. The place does not count if it was noted under other rules. Nil if the binding ended or does not exist.
    ///
    /// - Parameters:
    ///   - first: Updates before this one are left out.
    ///   - rules: The version of the rules of the log.
    func standing(
        of binding: BindingSerial, from first: UpdateSerial, under rules: Int64
    ) async throws -> BindingStanding?
    /// Returns a binding's completions that are not final, in the order of their updates.
    func unfinished(of binding: BindingSerial) async throws -> [Completion]
    /// Writes how far the log was evaluated for a binding, with completions that have no envelope. Completions that exist stay as they are,
    /// and completions of updates that ended are not written. Under the same rules the place never goes back.
    ///
    /// - Parameter isFull: Updates after the place had no room.
    /// - Returns: Whether the binding is of the revision; otherwise nothing is written.
    func evaluated(
        _ binding: BindingSerial, revision: Int64, to place: AudienceCursor, isFull: Bool, adding completions: [Completion],
        at now: Timestamp
    ) async throws -> Bool
    /// Writes a device's results of updates, in order, and how far it received. The place never goes back by a report.
    ///
    /// - Returns: An answer for each result. A result that comes again is late and changes nothing.
    func report(
        _ results: [ReportedResult], receivedTo place: ReceivedTo?, of binding: BindingSerial, at now: Timestamp
    ) async throws -> ReportAnswers
    /// Makes everything due that a binding received and did not finish, as the device lost what it had. Its received place is zero again.
    ///
    /// - Parameter needsResync: The device was further than it is now; once set, this stays until a resync.
    func offerAgain(to binding: BindingSerial, needsResync: Bool, at now: Timestamp) async throws
    /// Returns a binding's completions of content that its device does not have, in the order of their updates.
    func unreceivedContent(of binding: BindingSerial) async throws -> UnreceivedContent
    /// Returns the envelopes of completions that are in inboxes.
    func envelopes(of completions: [CompletionKey]) async throws -> [MessageID]
    /// Ends completions that later content stands for, unless their device received them, and takes them out of the inbox. Returns what was
    /// taken out. A completion that ended is left out.
    func coalesce(_ coalesced: [(CompletionKey, by: UpdateSerial)], at now: Timestamp) async throws -> [MessageID]
    /// Makes a completion due that tells a binding to fetch everything, and coalesces all content that its device does not have. An app has one
    /// such update; concurrent calls make one. A completion that was not received yet is used again.
    ///
    /// - Returns: The update, and what was taken out of the inbox; update zero if the binding ended.
    func resync(_ binding: BindingSerial, _ request: ResyncRequest, at now: Timestamp) async throws -> Resync
    /// Notes that content that expired up to a place does not concern a binding. The place never goes back.
    func saw(_ binding: BindingSerial, to place: UpdateSerial) async throws
    /// A binding of a revision left the audiences of updates. Completions that the device never received are forgotten; the others are
    /// marked, and end if they wait or are due (``CompletionMachine/left(at:)``). All are taken out of the inbox in the same
    /// transaction.
    ///
    /// - Returns: What was taken out; nothing for another revision.
    func left(
        _ completions: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) async throws -> [MessageID]
    /// A binding of a revision belongs to audiences again that it had left. Completions that ended with that are due. A second call changes
    /// nothing.
    func returned(
        _ completions: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) async throws
    /// Ends completions whose kinds a binding of a revision does not process, and takes them out of the inbox.
    func unsupported(
        _ completions: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) async throws
    /// Returns completions whose due time is reached, of live updates that are not paused and bindings that did not end. With a binding they
    /// are in the order of their updates, otherwise of their due times. It takes nothing: ``Effect/updateOffered(_:)`` counts once.
    func dueCompletions(
        of binding: BindingSerial?, in shards: ShardSet, at now: Timestamp, limit: Int
    ) async throws -> [DueCompletion]
    /// Postpones a due completion for which the inbox of a binding of a revision has no room. One that is not due stays as it is.
    func putOff(_ completion: CompletionKey, revision: Int64, until moment: Timestamp) async throws
    /// The clock was set back. A completion whose due time was set by the later clock waits as long from now on; no completion waits
    /// longer than its state allows (``CompletionMachine/longestWaitSeconds(in:)``). Returns whether these were all; each call changes
    /// a part.
    ///
    /// - Parameter moment: Completions that are due by then stay as they are.
    func bringBackCompletions(
        in shards: ShardSet, dueAfter moment: Timestamp, at now: Timestamp, limit: Int
    ) async throws -> Bool
    /// Returns completions of ended updates that are not final, in the order of their updates.
    func unfinishedOfEnded(in shards: ShardSet, limit: Int) async throws -> [EndedCompletion]
    /// Searches the ended updates after a place for completions that are not final and that ``unfinishedOfEnded(in:limit:)``
    /// does not return, and makes it return them. Returns the place for the next call; nil at the end.
    func findUnfinishedOfEnded(
        in shards: ShardSet, after place: UpdateSerial, limit: Int
    ) async throws -> UpdateSerial?
    /// Ends completions that did not end before.
    func endCompletions(_ ended: [(CompletionKey, CompletionMachine.State)], at now: Timestamp) async throws
    /// Makes parked completions of an update due, and writes an audit entry with their number. Returns the number that this call put back.
    func requeue(
        _ completions: [CompletionKey], at now: Timestamp, noting request: (key: KeyID, update: UpdateID), of app: AppSerial
    ) async throws -> Int

    // MARK: The audit

    /// Returns a page of an app's audit, from the latest entry on. Entries are written with what they tell of, and never changed.
    func audit(of app: AppSerial, before number: Int64?, limit: Int) async throws -> [AuditEntry]
    /// Forgets some entries that were written by a moment, and some of the oldest of an app beyond a number.
    func forgetAudit(before moment: Timestamp, beyond most: Int, limit: Int) async throws
}

/// What a store knows of a device that polls.
package struct PollVisit: Sendable {
    package var device: Device
    /// The one that the device came with last, of its present user; nil of a device that is to begin one.
    package var binding: UpdateBinding?
    /// What waits in its inbox; nil where that was not read, or is much.
    package var waiting: [WaitingName]?
    /// Whether the binding is to be given something again.
    package var isAnyDue: Bool

    package var isEmpty: Bool { waiting?.isEmpty == true && !isAnyDue }

    package init(
        device: Device, binding: UpdateBinding? = nil, waiting: [WaitingName]? = nil, isAnyDue: Bool = true
    ) {
        self.device = device
        self.binding = binding
        self.waiting = waiting
        self.isAnyDue = isAnyDue
    }

    /// So much of an inbox is looked at.
    package static let mostWaiting = 64
}

/// An envelope that waits, without what it says.
package struct WaitingName: Sendable {
    package var id: MessageID
    package var kind: EnvelopeKind

    package init(id: MessageID, kind: EnvelopeKind) {
        self.id = id
        self.kind = kind
    }
}

/// What became of what a device said of updates.
package struct ReportAnswers: Sendable {
    /// One for each result.
    package var answers: [ReportAnswer]
    /// Whether the binding is to be given something again now.
    package var isAnyDue: Bool

    package init(answers: [ReportAnswer], isAnyDue: Bool) {
        self.answers = answers
        self.isAnyDue = isAnyDue
    }
}

/// A binding, with its completions of the updates that are next in the log.
package struct BindingStanding: Sendable {
    package var binding: UpdateBinding
    /// The last completion of each update that has one, in the order of the updates.
    package var completions: [Completion]

    package init(binding: UpdateBinding, completions: [Completion] = []) {
        self.binding = binding
        self.completions = completions
    }
}

/// A binding as it was written.
package struct BindingChange: Sendable {
    package var binding: UpdateBinding
    /// What was taken out of the inbox in the same transaction.
    package var takenOut: [MessageID]

    package init(binding: UpdateBinding, takenOut: [MessageID]) {
        self.binding = binding
        self.takenOut = takenOut
    }
}

package struct UpdateRequest: Sendable {
    package var proposed: UpdateID
    package var app: AppSerial
    /// Who requests it.
    package var key: KeyID
    package var definition: Update.Definition
    /// What devices are given.
    package var body: [UInt8]
    /// That an index finds its audience, or that it has none.
    package var isIndexed: Bool
    /// The hash of the `Idempotency-Key`, and that of the request.
    package var idempotency: (key: [UInt8], fingerprint: [UInt8])?
    package var limits: UpdateLimits

    package init(
        proposed: UpdateID, app: AppSerial, key: KeyID, definition: Update.Definition, body: [UInt8], isIndexed: Bool,
        idempotency: (key: [UInt8], fingerprint: [UInt8])?, limits: UpdateLimits
    ) {
        self.proposed = proposed
        self.app = app
        self.key = key
        self.definition = definition
        self.body = body
        self.isIndexed = isIndexed
        self.idempotency = idempotency
        self.limits = limits
    }
}

package struct UnreceivedContent: Sendable {
    package var completions: [Completion]
    /// One that says to fetch everything: it stands for all that comes before the device has it.
    package var resync: UpdateSerial?

    package init(completions: [Completion], resync: UpdateSerial?) {
        self.completions = completions
        self.resync = resync
    }
}

/// The update by which an app's devices are told to fetch everything, where it is not there yet.
package struct ResyncRequest: Sendable {
    package var proposed: UpdateID
    package var body: [UInt8]

    package init(proposed: UpdateID, body: [UInt8]) {
        self.proposed = proposed
        self.body = body
    }
}

package struct Resync: Sendable {
    package var update: UpdateSerial
    /// What it stands for, and was taken out of the inbox.
    package var coalesced: [MessageID]

    package init(update: UpdateSerial, coalesced: [MessageID]) {
        self.update = update
        self.coalesced = coalesced
    }
}

package enum UpdateResumption: Sendable {
    case resumed
    /// The update ended, or another request resumed it.
    case notPaused
    case tooManyAudienceBytes
}

package enum UpdatePut: Sendable {
    /// With the one that it superseded, and the last before it that lives.
    case made(Update, superseded: UpdateSerial?, previous: UpdateSerial)
    /// The `Idempotency-Key` was used before, by the same request.
    case repeated(Update)
    case refused(PublishRules.Refusal)
}

package struct EndedUpdate: Equatable, Sendable {
    package var app: AppSerial
    package var update: UpdateSerial

    package init(app: AppSerial, update: UpdateSerial) {
        self.app = app
        self.update = update
    }
}

/// A completion with the device that it is of.
package struct DeviceCompletion: Sendable {
    package var device: DeviceID
    package var user: UserID?
    package var profile: String
    package var completion: Completion

    package init(device: DeviceID, user: UserID?, profile: String, completion: Completion) {
        self.device = device
        self.user = user
        self.profile = profile
        self.completion = completion
    }
}

package struct WakingUpdate: Sendable {
    package var update: Update
    package var app: AppID
    package var wokenTo: BindingSerial

    package init(update: Update, app: AppID, wokenTo: BindingSerial) {
        self.update = update
        self.app = app
        self.wokenTo = wokenTo
    }
}

package struct AppBinding: Sendable {
    package var binding: UpdateBinding
    package var device: DeviceID

    package init(binding: UpdateBinding, device: DeviceID) {
        self.binding = binding
        self.device = device
    }
}

package struct ReleasedBinding: Equatable, Sendable {
    package var binding: BindingSerial
    package var device: DeviceSerial

    package init(binding: BindingSerial, device: DeviceSerial) {
        self.binding = binding
        self.device = device
    }
}

/// What a device says of an update.
package struct ReportedResult: Equatable, Sendable {
    package var update: UpdateID
    package var entry: Int
    /// Which time it was given; nil: the last.
    package var attempt: Int?
    package var result: UpdateResult

    package init(update: UpdateID, entry: Int, attempt: Int?, result: UpdateResult) {
        self.update = update
        self.entry = entry
        self.attempt = attempt
        self.result = result
    }
}

package enum ReportAnswer: Equatable, Sendable {
    /// Written; what of it is in the inbox still is to be taken out.
    case taken(MessageID?)
    /// It came to an end before.
    case late
    /// The binding has no such update.
    case unknown
}

/// A completion that is to be given again, with all that an envelope of it needs.
package struct DueCompletion: Sendable {
    package var completion: Completion
    package var update: Update
    package var binding: UpdateBinding
    package var device: DeviceID
    package var app: AppID

    package init(completion: Completion, update: Update, binding: UpdateBinding, device: DeviceID, app: AppID) {
        self.completion = completion
        self.update = update
        self.binding = binding
        self.device = device
        self.app = app
    }
}

/// A completion whose update ended before it did.
package struct EndedCompletion: Sendable {
    package var completion: Completion
    package var device: DeviceSerial
    package var app: AppSerial
    package var origin: Origin
    package var status: Update.Status
    package var isContent: Bool
    /// What of it is in the inbox.
    package var envelope: MessageID?

    package init(
        completion: Completion, device: DeviceSerial, app: AppSerial, origin: Origin, status: Update.Status, isContent: Bool
    ) {
        self.completion = completion
        self.device = device
        self.app = app
        self.origin = origin
        self.status = status
        self.isContent = isContent
    }
}
