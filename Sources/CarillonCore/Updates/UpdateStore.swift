package import CarillonWire

/// Stores audience updates, bindings, and the state of each update at each binding.
///
/// Each change is one transaction: a concurrent call sees all of the change or nothing. Concurrent changes of one row are
/// serialized, and each reads the result of the change before it. A read sees one moment of the store. Every method throws
/// ``StoreFault`` if the store cannot be read or written; a change that throws is not made. A limit on the length of a list
/// returns the first rows of its order.
///
/// A change with the revision of a binding is made only if the binding still has this revision and has not ended.
///
/// Methods with a set of shards neither return nor change rows of devices in other shards.
package protocol UpdateStore: Sendable {
    // MARK: Updates

    /// Returns the mark of the present state of an app's log; nil if there is no such app.
    func logMark(of app: AppSerial) async throws -> UpdateLogMark?
    /// Writes an update with an audit entry at the end of its app's log, and ends the update that it supersedes.
    ///
    /// Updates become visible in the order of their numbers: a reader that has seen one never sees an earlier one appear. Of
    /// concurrent requests with one `Idempotency-Key` only one publishes an update. Concurrent requests do not exceed the limits
    /// of the app. A repeated request is answered before limits are checked. A refused request changes nothing.
    func publishUpdate(_ request: UpdateRequest, at now: Timestamp) async throws -> UpdatePut
    /// Returns the live updates of an app that are not paused, in ascending order.
    func liveUpdates(of app: AppSerial) async throws -> [Update]
    /// Returns an update of an app, live or ended; nil if the app has no such update or the update was forgotten.
    func update(_ id: UpdateID, of app: AppSerial) async throws -> Update?
    /// Returns a page of an app's updates, from the latest on.
    func updates(of app: AppSerial, _ filter: UpdateFilter, before: UpdateSerial?, limit: Int) async throws -> [Update]
    /// Returns the latest expired content update of an app, even if it was forgotten; zero if none of its content updates
    /// expired.
    func lastExpiredContent(of app: AppSerial) async throws -> UpdateSerial
    /// Returns the expired content updates of an app after a place, ascending. Nil if some of them were forgotten, or if there
    /// are more than the limit.
    func expiredContent(of app: AppSerial, after place: UpdateSerial, limit: Int) async throws -> [Update]?
    /// Ends a live update and writes an audit entry. Afterwards the update is not sent to any device. Returns whether this call
    /// ended it.
    func withdrawUpdate(_ update: Update, by key: KeyID, at now: Timestamp) async throws -> Bool
    /// Ends the pause of a live update and writes an audit entry. The log is evaluated again for every binding. Earlier
    /// transactions have made the completions of the update due, which has no effect while the update is paused.
    ///
    /// - Parameter limit: The largest total size of the audiences of the app's live updates that are not paused, in bytes.
    func resumeUpdate(
        _ update: Update, by key: KeyID, audienceBytes limit: Int, at now: Timestamp
    ) async throws -> UpdateResumption
    /// Ends expired live updates, including paused ones. Returns the updates that this call ended.
    func endExpiredUpdates(at now: Timestamp, limit: Int) async throws -> [EndedUpdate]
    /// Forgets the oldest of an app's ended updates beyond a number, and updates that ended before a moment, with their
    /// completions. An update stays while one of its completions is not final. Each call forgets a part. Returns whether nothing
    /// is left to forget.
    ///
    /// - Parameter retention: Nil forgets only updates beyond the number.
    func forgetUpdates(_ limits: UpdateLimits, by retention: RetentionTime?, limit: Int) async throws -> Bool
    /// Returns the number of completions of an update in each state.
    func counts(of update: UpdateSerial) async throws -> [CompletionMachine.State: Int]
    /// Returns a page of an update's completions, in the order of their bindings and entries.
    func completions(
        of update: UpdateSerial, in state: CompletionMachine.State?, after: CompletionKey?, limit: Int
    ) async throws -> [DeviceCompletion]
    /// Returns the completions of an update at one device, for all its users and profiles.
    func completions(of update: UpdateSerial, at device: DeviceID) async throws -> [Completion]

    // MARK: Bindings

    /// Returns the binding of a device with its present user and a profile, and creates the binding if it does not exist. Another
    /// binding of the device ends in the same transaction. A binding that ended is reused with a later revision, and its
    /// unfinished completions become due.
    ///
    /// Concurrent calls create one binding. Nil if the device does not exist, its app was deleted, or it has
    /// ``UpdateBinding/mostOfDevice`` bindings of which none can be removed. In these cases nothing is changed.
    func binding(of device: DeviceSerial, profile: String, at now: Timestamp) async throws -> UpdateBinding?
    /// Returns the present binding of a device; nil if the device has no binding, or if all its bindings ended.
    func presentBinding(of device: DeviceSerial) async throws -> UpdateBinding?
    /// Writes parameters, location and kinds of a binding with the next revision, if the stored revision is the expected one.
    /// Every update is then evaluated again for the binding. Nil if the revision differs or the binding ended. Of concurrent
    /// changes of one revision only one is made.
    ///
    /// - Parameter hasOtherKinds: Updates of kinds that the binding does not process any more become unsupported and are removed
    ///   from the inbox in the same transaction. Unsupported updates of its new kinds become due.
    /// - Returns: The binding in its stored state, and the envelopes that were removed from the inbox in the same transaction.
    func change(
        _ binding: UpdateBinding, hasOtherKinds: Bool, at now: Timestamp
    ) async throws -> (binding: UpdateBinding, takenOut: [MessageID])?
    /// Returns the number of an app's bindings that have not ended.
    func bindingCount(of app: AppSerial) async throws -> Int
    /// Returns an app's bindings that have not ended, in the order of their numbers.
    func bindings(of app: AppSerial, after: BindingSerial, limit: Int) async throws -> [AppBinding]
    /// Removes locations that are as old as a moment or older. Their bindings get the next revision, and updates are evaluated
    /// again for them.
    func forgetLocations(in shards: ShardSet, before moment: Timestamp, limit: Int) async throws
    /// Returns ended bindings with completions that must still be ended.
    func bindingsToRelease(in shards: ShardSet, limit: Int) async throws -> [ReleasedBinding]
    /// Ends some completions of an ended binding that are not final (``CompletionMachine/State/gone``).
    ///
    /// - Returns: The envelopes that are still in the inbox, which the caller removes; nil if no completion is left, or the
    ///   binding is in use again.
    func release(_ binding: BindingSerial, limit: Int, at now: Timestamp) async throws -> [MessageID]?

    /// Reads a polling device, its binding, and the identifiers of its waiting envelopes as of one moment. Nil if the device does
    /// not exist. The inbox is then not read.
    func poll(of name: DeviceName, at now: Timestamp) async throws -> PollVisit?

    // MARK: Waking

    /// Returns live updates for which sleeping devices must still be woken; for each app the first update.
    func wakingUpdates(limit: Int) async throws -> [WakingUpdate]
    /// Returns an app's bindings whose devices have a push token and are not suspended, in the order of their numbers.
    func bindingsToWake(of app: AppSerial, after: BindingSerial, limit: Int) async throws -> [AppBinding]
    /// Notes that the devices of bindings up to a place were woken; nil notes that all were. An update that is complete stays
    /// complete.
    func woke(_ update: UpdateSerial, to place: BindingSerial?) async throws

    // MARK: Completions

    /// Returns the last entry of each of these updates at a binding, in their order. Updates without an entry are left out.
    func completions(of binding: BindingSerial, _ updates: [UpdateSerial]) async throws -> [Completion]
    /// Returns a binding that has not ended, and the last entry of each live update after its place, ascending, as of one moment.
    /// The place is ignored if it was noted under other rules. Nil if the binding ended or does not exist.
    ///
    /// - Parameters:
    ///   - first: Updates before this one are left out.
    ///   - rules: The version of the rules of the log.
    func bindingState(
        of binding: BindingSerial, from first: UpdateSerial, under rules: Int64
    ) async throws -> BindingState?
    /// Returns a binding's completions that are not final, in the order of their updates.
    func unfinished(of binding: BindingSerial) async throws -> [Completion]
    /// Writes the place up to which the log was evaluated for a binding, with completions that have no envelope. Existing
    /// completions stay unchanged, and completions of ended updates are not written. Under the same rules the place never moves
    /// back.
    ///
    /// - Parameter isFull: Whether the inbox had no room for updates after the place.
    /// - Returns: Whether the binding has the expected revision; otherwise nothing is written.
    func evaluated(
        _ binding: BindingSerial, revision: Int64, to place: AudienceCursor, isFull: Bool, adding completions: [Completion],
        at now: Timestamp
    ) async throws -> Bool
    /// Writes a device's results of updates, in order, and the place up to which it received envelopes. A report never moves the
    /// place back.
    ///
    /// - Returns: An answer for each result, and whether completions of the binding are due now. A repeated result is late and
    ///   changes nothing.
    func report(
        _ results: [ReportedResult], receivedTo place: ReceivedTo?, of binding: BindingSerial, at now: Timestamp
    ) async throws -> (answers: [ReportAnswer], isAnyDue: Bool)
    /// Makes all completions due that a binding received and did not finish, because the device lost its data. The received place
    /// is reset to zero.
    ///
    /// - Parameter needsResync: Whether the device reported a later place before. Once set, this stays until a resync.
    func offerAgain(to binding: BindingSerial, needsResync: Bool, at now: Timestamp) async throws
    /// Returns a binding's completions of content that its device does not have, in the order of their updates.
    ///
    /// - Returns: The completions, and the update that requests a resync, if the device has not received it. It replaces all
    ///   earlier content.
    func unreceivedContent(
        of binding: BindingSerial
    ) async throws -> (completions: [Completion], resync: UpdateSerial?)
    /// Returns the envelopes of completions that are in inboxes.
    func envelopes(of completions: [CompletionKey]) async throws -> [MessageID]
    /// Ends completions that are coalesced into later content, unless their device received them, and removes their envelopes
    /// from the inbox. Returns the removed envelopes. A completion that ended is left out.
    func coalesce(_ coalesced: [(CompletionKey, by: UpdateSerial)], at now: Timestamp) async throws -> [MessageID]
    /// Makes a completion due that requests a binding to fetch all content, and coalesces all content that its device does not
    /// have. An app has one such update; concurrent calls create one. A completion that was not received yet is used again.
    ///
    /// - Returns: The update, and the envelopes of coalesced completions that were removed from the inbox. The update is zero if
    ///   the binding ended.
    func resync(
        _ binding: BindingSerial, _ request: ResyncRequest, at now: Timestamp
    ) async throws -> (update: UpdateSerial, coalesced: [MessageID])
    /// Notes that content that expired up to a place does not affect a binding. The place never moves back.
    func saw(_ binding: BindingSerial, to place: UpdateSerial) async throws
    /// Notes that a binding of a revision left the audiences of updates. Completions that the device never received are
    /// forgotten. The others are marked, and end if they wait or are due (``CompletionMachine/leftAudience(at:)``).
    /// All envelopes are removed from the inbox in the same transaction.
    ///
    /// - Returns: The removed envelopes; none if the revision differs.
    func leftAudience(
        _ completions: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) async throws -> [MessageID]
    /// Notes that a binding of a revision belongs again to audiences that it had left. Completions that ended when it left become
    /// due. A second call changes nothing.
    func returned(
        _ completions: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) async throws
    /// Ends completions whose kinds a binding of a revision does not process, and removes their envelopes from the inbox.
    func unsupported(
        _ completions: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) async throws
    /// Returns due completions of live updates that are not paused and of bindings that have not ended. With a binding they are
    /// in the order of their updates, otherwise in the order of their due times. The call removes nothing:
    /// ``Effect/updateOffered(_:)`` is applied once.
    func dueCompletions(
        of binding: BindingSerial?, in shards: ShardSet, at now: Timestamp, limit: Int
    ) async throws -> [DueCompletion]
    /// Postpones a due completion if the inbox of a binding of a revision has no room. A completion that is not due stays
    /// unchanged.
    func putOff(_ completion: CompletionKey, revision: Int64, until moment: Timestamp) async throws
    /// Corrects due times after the clock was set back. A completion whose due time was set by the later clock waits as long from
    /// now on. No completion waits longer than its state allows (``CompletionMachine/longestWaitSeconds(in:)``). Each call
    /// changes a part. Returns whether these were all.
    ///
    /// - Parameter moment: Completions that are due by then stay unchanged.
    func bringBackCompletions(
        in shards: ShardSet, dueAfter moment: Timestamp, at now: Timestamp, limit: Int
    ) async throws -> Bool
    /// Returns completions of ended updates that are not final, in the order of their updates.
    func unfinishedOfEnded(in shards: ShardSet, limit: Int) async throws -> [EndedCompletion]
    /// Searches the ended updates after a place for completions that are not final and that ``unfinishedOfEnded(in:limit:)`` does
    /// not return, and makes that method return them. Returns the place for the next call; nil at the end.
    func findUnfinishedOfEnded(
        in shards: ShardSet, after place: UpdateSerial, limit: Int
    ) async throws -> UpdateSerial?
    /// Ends completions that have not ended before.
    func endCompletions(_ ended: [(CompletionKey, CompletionMachine.State)], at now: Timestamp) async throws
    /// Makes parked completions of an update due, and writes an audit entry with their number. Returns the number that this call
    /// requeued.
    func requeue(
        _ completions: [CompletionKey], at now: Timestamp, noting request: (key: KeyID, update: UpdateID), of app: AppSerial
    ) async throws -> Int

    // MARK: Audit

    /// Returns a page of an app's audit, from the latest entry on. Entries are written in the transaction of the action, and
    /// never changed.
    func audit(of app: AppSerial, before number: Int64?, limit: Int) async throws -> [AuditEntry]
    /// Removes some entries that were written by a moment, and some of the oldest entries of an app beyond a number.
    func forgetAudit(before moment: Timestamp, beyond most: Int, limit: Int) async throws
}

/// The state of a polling device.
package struct PollVisit: Sendable {
    package var device: Device
    /// The last binding of the device, if it is of its present user; nil if the device must create a binding.
    package var binding: UpdateBinding?
    /// The waiting envelopes; nil if the inbox was not read or has more than ``mostWaiting``.
    package var waiting: [WaitingName]?
    /// Whether completions of the binding are due.
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

    /// The largest number of envelopes that are read.
    package static let mostWaiting = 64
}

/// A waiting envelope without its content.
package struct WaitingName: Sendable {
    package var id: MessageID
    package var kind: EnvelopeKind

    package init(id: MessageID, kind: EnvelopeKind) {
        self.id = id
        self.kind = kind
    }
}

/// A binding, with its completions of the next updates in the log.
package struct BindingState: Sendable {
    package var binding: UpdateBinding
    /// The last completion of each update that has one, in the order of the updates.
    package var completions: [Completion]

    package init(binding: UpdateBinding, completions: [Completion] = []) {
        self.binding = binding
        self.completions = completions
    }
}

package struct UpdateRequest: Sendable {
    package var proposed: UpdateID
    package var app: AppSerial
    /// The API key of the request.
    package var key: KeyID
    package var definition: Update.Definition
    /// The content that devices receive.
    package var body: [UInt8]
    /// Whether an index finds the audience, or the update has none.
    package var isIndexed: Bool
    /// The hash of the `Idempotency-Key`, and the hash of the request.
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

/// The update that requests an app's devices to fetch all content, for the case that the app has none yet.
package struct ResyncRequest: Sendable {
    package var proposed: UpdateID
    package var body: [UInt8]

    package init(proposed: UpdateID, body: [UInt8]) {
        self.proposed = proposed
        self.body = body
    }
}

package enum UpdateResumption: Sendable {
    case resumed
    /// The update ended, or another request resumed it.
    case notPaused
    case tooManyAudienceBytes
}

package enum UpdatePut: Sendable {
    /// The update, the update that it superseded, and the last live update before it.
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

/// A completion with its device.
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

/// The result of an update that a device reports.
package struct ReportedResult: Equatable, Sendable {
    package var update: UpdateID
    package var entry: Int
    /// The attempt that the result is of; nil for the last.
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
    /// The result was written. The envelope, if there is one, must be removed from the inbox.
    case taken(MessageID?)
    /// The completion ended before.
    case late
    /// The binding has no such completion.
    case unknown
}

/// A due completion, with the data for its envelope.
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

/// A completion that is not final although its update ended.
package struct EndedCompletion: Sendable {
    package var completion: Completion
    package var device: DeviceSerial
    package var app: AppSerial
    package var origin: Origin
    package var status: Update.Status
    package var isContent: Bool
    /// The envelope in the inbox, if there is one.
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
