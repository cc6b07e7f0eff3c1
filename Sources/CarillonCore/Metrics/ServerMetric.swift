package import Metrics

/// All metrics of the server, with their Prometheus names.
package enum ServerMetric: String, CaseIterable, Sendable {
    case buildInfo = "carillon_build_info"

    case connections = "carillon_http_connections"
    case connectionsRefused = "carillon_http_connections_refused_total"
    case connectionsStalled = "carillon_http_connections_stalled_total"
    case clientAddressesInvalid = "carillon_client_address_invalid_total"
    case acceptPauses = "carillon_accept_pauses_total"
    case listenersClosed = "carillon_listeners_closed_total"
    case sockets = "carillon_sockets"
    case socketsRefused = "carillon_sockets_refused_total"
    case framePauses = "carillon_socket_read_pauses_total"
    case socketCloses = "carillon_socket_closes_total"
    case sessions = "carillon_sessions"
    case sessionsStarted = "carillon_sessions_started_total"
    case waiters = "carillon_waiters"
    case refusals = "carillon_refusals_total"
    case rateRefusals = "carillon_rate_refusals_total"
    case logLinesWithheld = "carillon_log_lines_withheld_total"

    case quotaRefusals = "carillon_share_refusals_total"
    case answerBytes = "carillon_answer_bytes"
    case answersRefused = "carillon_answers_refused_total"

    case messages = "carillon_messages_total"
    case matrixNotifications = "carillon_matrix_notifications_total"
    case envelopesAccepted = "carillon_envelopes_accepted_total"
    case envelopesEnded = "carillon_envelopes_ended_total"
    case acknowledgementDelay = "carillon_acknowledgement_delay_seconds"
    case inboxEnvelopes = "carillon_inbox_envelopes"
    case inboxBytes = "carillon_inbox_bytes"
    case outcomesForgotten = "carillon_outcomes_forgotten_total"
    case idempotencyKeysForgotten = "carillon_idempotency_keys_forgotten_total"
    case devicesCollected = "carillon_devices_collected_total"

    case commitChanges = "carillon_commit_changes"
    case commitDuration = "carillon_commit_duration_seconds"
    case commitFailures = "carillon_commit_failures_total"
    case changesFailed = "carillon_changes_failed_total"
    case changesRefused = "carillon_changes_refused_total"
    case changesKept = "carillon_changes_kept_total"
    case writesSpared = "carillon_writes_spared_total"
    case outcomesDropped = "carillon_outcomes_dropped_total"

    case homes = "carillon_homes"
    case shardMoves = "carillon_shard_moves_total"
    case homeRequests = "carillon_home_requests_total"
    case handOversWaiting = "carillon_handovers_waiting"
    case handOversOldest = "carillon_handovers_oldest_seconds"
    case fencedWrites = "carillon_fenced_writes_total"

    case pings = "carillon_pings_total"
    case disconnectCallbacks = "carillon_disconnect_callbacks_total"
    case callsUnderWay = "carillon_calls_under_way"
    case callsUnreadable = "carillon_calls_unreadable_total"
    case callResultsDropped = "carillon_call_results_dropped_total"
    case watchesRefused = "carillon_watches_refused_total"

    case pushes = "carillon_pushes_total"
    case pushesFolded = "carillon_pushes_folded_total"
    case pushesShortened = "carillon_pushes_shortened_total"
    case parkedPushesForgotten = "carillon_parked_pushes_forgotten_total"
    case pushesUnderWay = "carillon_pushes_under_way"
    case pushQueuesPaused = "carillon_push_queues_paused"
    case pushQueuesPausedDeprecated = "carillon_push_lanes_paused"
    case pushResultsDropped = "carillon_push_results_dropped_total"

    case itemUpdates = "carillon_item_updates_total"
    case itemsDeleted = "carillon_items_deleted_total"
    case subscriptionsClosed = "carillon_subscriptions_closed_total"
    case conditionErrors = "carillon_condition_errors_total"
    case conditionsOverCost = "carillon_conditions_over_cost_total"
    case firings = "carillon_firings_total"
    case approvalHooks = "carillon_vetoes_total"
    case updatesOffered = "carillon_updates_offered_total"
    case updateResults = "carillon_update_results_total"
    case updateFaults = "carillon_update_faults_total"
    case placeholderErrors = "carillon_placeholder_errors_total"
    case notificationsTooLarge = "carillon_notifications_too_large_total"

    case bindingsRemoved = "carillon_bindings_removed_total"

    case attachmentsBegun = "carillon_attachments_begun_total"
    case attachmentsCompleted = "carillon_attachments_completed_total"
    case attachmentsEnded = "carillon_attachments_ended_total"
    case attachmentsRefused = "carillon_attachments_refused_total"
    case attachmentBytesReceived = "carillon_attachment_bytes_received_total"
    case attachmentBytesSent = "carillon_attachment_bytes_sent_total"
    case attachmentOrphans = "carillon_attachment_orphans_total"

    case serviceRequests = "carillon_service_requests_total"

    case eventLoopDelay = "carillon_event_loop_delay_seconds"
    case cpuTime = "process_cpu_seconds_total"
    case residentMemory = "process_resident_memory_bytes"
    case openFiles = "process_open_fds"
    case openFilesLimit = "process_max_fds"
    case startTime = "process_start_time_seconds"

    package enum Kind: Equatable, Sendable {
        case counter
        case gauge
        /// A histogram with the upper bounds of its buckets, in seconds, or in the counted unit if it does not measure time.
        case histogram([Double])
    }
}

extension ServerMetric {
    package var kind: Kind {
        switch self {
        case .buildInfo, .connections, .sockets, .sessions, .answerBytes, .waiters, .inboxEnvelopes, .inboxBytes,
            .homes, .handOversWaiting, .handOversOldest,
            .callsUnderWay,
            .pushesUnderWay, .pushQueuesPaused, .pushQueuesPausedDeprecated,
            .residentMemory, .openFiles, .openFilesLimit, .startTime:
            .gauge
        case .acknowledgementDelay:
            .histogram([
                0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3600, 21_600, 86_400,
            ])
        case .commitDuration:
            .histogram([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10])
        case .eventLoopDelay:
            .histogram([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5])
        case .commitChanges:
            .histogram([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048])
        default:
            .counter
        }
    }

    package var help: String {
        switch self {
        case .buildInfo: "Always 1; the label has the version of the server."
        case .connections: "Open HTTP connections, without sockets."
        case .connectionsRefused: "Connections refused because the server had reached its limit."
        case .connectionsStalled: "Connections ended because the peer did not read its answer."
        case .clientAddressesInvalid: "Requests with a client address from the proxy that cannot be read."
        case .listenersClosed: "How often a listener closed because of an error and was opened again."
        case .acceptPauses:
            "How often the server paused accepting connections because only its reserved file descriptors were left."
        case .sockets: "Open WebSockets."
        case .socketsRefused: "Handshakes refused because the server had reached its limit of sockets."
        case .framePauses: "How often the server paused reading from a socket that sent too many frames."
        case .socketCloses: "Sockets that the server closed, by close code."
        case .sessions: "Devices that are connected, by socket or event stream."
        case .sessionsStarted: "Devices that connected."
        case .waiters: "Long polls and event streams that wait for an inbox to fill."
        case .refusals: "Requests refused, by the code of the error catalogue."
        case .rateRefusals: "Requests refused because of a rate limit, by the owner of the limit."
        case .logLinesWithheld: "Log lines that were withheld because the same line was logged less than a minute before."
        case .quotaRefusals: "Requests refused because a device or an address had used up its quota, by quota."
        case .answerBytes: "Bytes of answers that are not complete or not read by their clients."
        case .answersRefused: "Answers refused because all answers together had reached their limit of bytes."
        case .messages: "Messages that senders posted, by result."
        case .matrixNotifications: "Notifications of Matrix servers for one device, by result."
        case .envelopesAccepted: "Envelopes that entered an inbox, by kind."
        case .envelopesEnded: "Envelopes that left an inbox, by kind and outcome."
        case .acknowledgementDelay: "Time from the acceptance of an envelope to its acknowledgement."
        case .inboxEnvelopes: "Waiting envelopes in all inboxes."
        case .inboxBytes: "Bytes of the waiting envelopes in all inboxes."
        case .outcomesForgotten: "Outcomes removed because a device had too many."
        case .idempotencyKeysForgotten: "Idempotency keys removed because a device had too many."
        case .devicesCollected: "Devices removed because they were not used, by reason."
        case .commitChanges: "Inbox changes in one commit."
        case .commitDuration: "Duration of a commit, until it is on disk."
        case .commitFailures: "Commits that failed completely."
        case .changesFailed: "Changes that could not be stored although other changes of their commit were."
        case .changesRefused: "Changes refused because too many were waiting for the disk."
        case .writesSpared: "Envelopes that were acknowledged before they were written."
        case .changesKept: "Failed changes that were kept for another attempt."
        case .outcomesDropped:
            "Outcomes dropped because too many were kept; their sessions end and their envelopes are delivered again."
        case .homes: "Homes in this process."
        case .shardMoves: "Moves of shards to other homes, by result."
        case .homeRequests: "Complete requests that were forwarded to a home, by result."
        case .handOversWaiting: "Hand-overs between shards that are not applied yet."
        case .handOversOldest: "Known waiting time of the oldest hand-over."
        case .fencedWrites: "Writes that the store refused because the incarnation of their home was removed."
        case .pings: "Pings of backends, by result."
        case .disconnectCallbacks: "Disconnect callbacks, by result."
        case .callsUnderWay: "Calls to backends in progress."
        case .callsUnreadable: "Calls postponed because their row could not be read."
        case .callResultsDropped: "Results of calls that could not be stored and are lost."
        case .watchesRefused: "Watches refused because a device or an app had reached its limit."
        case .pushes: "Pushes through vendors' services, by result."
        case .pushesFolded: "Alerts that were merged into a wake because a device had reached its limit of waiting alerts."
        case .pushesShortened: "Alerts whose texts were shortened to the limit of the vendor's service."
        case .parkedPushesForgotten: "Parked pushes removed because a device had too many."
        case .pushesUnderWay: "Pushes sent to vendors' services without an answer yet."
        case .pushQueuesPaused:
            "Push queues that are paused because the service cannot be reached or refuses the push credentials."
        case .pushQueuesPausedDeprecated: "Deprecated name of carillon_push_queues_paused."
        case .pushResultsDropped: "Answers of vendors' services that could not be stored; the pushes are sent again."
        case .itemUpdates: "Item updates that publishers sent, by result."
        case .itemsDeleted: "Items that were deleted, by a request or because they were idle."
        case .subscriptionsClosed: "Subscriptions that ended because the rules of their app closed an item."
        case .conditionErrors: "Conditions that had no value when they were evaluated."
        case .conditionsOverCost: "Evaluations of conditions that were stopped because they cost more than their app allows."
        case .firings: "Firings of subscriptions, by result."
        case .approvalHooks: "Calls of approval hooks, by answer."
        case .updatesOffered: "Updates that were added to inboxes, or could not be."
        case .updateResults: "Results of updates that devices reported."
        case .updateFaults:
            "How often an update could not be delivered to a connected device; it is delivered when the device polls."
        case .placeholderErrors: "Placeholders of notifications that had no value and show nothing."
        case .notificationsTooLarge:
            "Notifications that are too large for the vendor's service; their devices are woken instead."
        case .bindingsRemoved: "Idle bindings that were removed because a device had too many."
        case .attachmentsBegun: "Started uploads of attachments."
        case .attachmentsCompleted: "Attachments that were uploaded completely."
        case .attachmentsEnded: "Attachments that were removed: fetched by all, expired, or deleted."
        case .attachmentsRefused: "Uploads and transfers of attachments that were refused because a quota was used up."
        case .attachmentBytesReceived: "Bytes of attachments that were received."
        case .attachmentBytesSent: "Bytes of attachments that were sent."
        case .serviceRequests: "Requests of services, by result."
        case .attachmentOrphans: "Files without an attachment that were removed."
        case .eventLoopDelay: "Event-loop delay, sampled once a second."
        case .cpuTime: "CPU time of the process, in user and kernel mode."
        case .residentMemory: "Memory of the process that is in RAM."
        case .openFiles: "Open file descriptors."
        case .openFilesLimit: "Maximum number of open file descriptors."
        case .startTime: "When the process started, in seconds since 1970."
        }
    }

    /// The labels of the metric. Each label has few values, and no client can add values.
    package var labels: [String] {
        switch self {
        case .buildInfo: ["version"]
        case .socketCloses, .refusals: ["code"]
        case .rateRefusals, .quotaRefusals, .attachmentsRefused: ["of"]
        case .messages, .matrixNotifications, .pings, .disconnectCallbacks, .pushes, .itemUpdates, .firings, .approvalHooks,
            .updatesOffered, .updateResults, .serviceRequests, .shardMoves, .homeRequests:
            ["result"]
        case .envelopesAccepted: ["kind"]
        case .envelopesEnded: ["kind", "outcome"]
        case .watchesRefused: ["full"]
        case .devicesCollected, .itemsDeleted: ["reason"]
        default: []
        }
    }
}

extension ServerMetric {
    /// - Parameters:
    ///   - values: The values of the labels, in their order.
    ///   - factory: Makes the counter.
    package func counter(_ values: String..., by factory: any MetricsFactory = MetricsSystem.factory) -> Counter {
        assert(kind == .counter && values.count == labels.count)
        return Counter(label: rawValue, dimensions: Array(zip(labels, values)), factory: factory)
    }

    package func gauge() -> Gauge {
        assert(kind == .gauge && labels.isEmpty)
        return Gauge(label: rawValue)
    }

    package func timer() -> Metrics.Timer {
        assert(rawValue.hasSuffix("_seconds"))
        return Metrics.Timer(label: rawValue)
    }

    package func recorder() -> Recorder { Recorder(label: rawValue, dimensions: [], aggregate: true) }
}
