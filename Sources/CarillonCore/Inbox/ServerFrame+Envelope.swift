import CarillonBasics
package import CarillonWire

extension ServerFrame {
    /// Makes the frame that delivers an envelope.
    package init(_ envelope: Envelope) {
        let channelID = ChannelID(envelope.origin.id).description
        let version = envelope.id.description
        switch envelope.kind {
        case .message(let content):
            self = .notification(
                NotificationFrame(channelID: channelID, version: version, body: content.body, coding: content.coding))
        case .channelClosed:
            self = .channelEvent(ChannelEventFrame(channelID: channelID, version: version, event: .closed))
        case .channelError(let code):
            self = .channelEvent(ChannelEventFrame(channelID: channelID, version: version, event: .error(code: code)))
        case .pingFailed(let failure):
            self = .channelEvent(
                ChannelEventFrame(channelID: channelID, version: version, event: .pingFailed(code: failure.rawValue)))
        case .deviceStatus(let status):
            self = .deviceStatus(
                DeviceStatusFrame(
                    version: version, status: status.name, reason: status.reason?.rawValue,
                    at: envelope.acceptedAt.milliseconds))
        case .fired(let body, _):
            self = .fired(FiredFrame(version: version, body: body))
        case .update(let copy):
            self = .update(
                UpdateFrame(version: version, attempt: copy.attempt, entry: copy.entry, body: copy.body))
        case .retraction(let entry):
            let body = JSONWriter.object { $0.member("id", UpdateID(envelope.origin.id).description) }
            self = .update(UpdateFrame(version: version, attempt: 0, entry: entry, body: body))
        case .service(_, let body): self = .service(ServiceFrame(version: version, body: body))
        case .recovered:
            self = .channelEvent(ChannelEventFrame(channelID: channelID, version: version, event: .recovered))
        }
    }
}
