import CarillonBasics
import CarillonCore
import CarillonWire

extension ServiceProvider.Profile {
    static let memberNames: Set = ["name", "version", "services", "keys", "icon", "revision"]

    init(_ body: JSONValue) throws(Refusal) {
        func text(_ name: String, _ most: Int) throws(Refusal) -> String {
            guard let text = try body.textMember(name), OfferLimits.isText(text, upTo: most) else {
                throw Refusal(.fieldInvalid, "The field \"\(name)\" must be a text of 1 to \(most) bytes.")
            }
            return text
        }
        guard case .array(let services)? = body["services"], services.count <= Self.mostOffers else {
            throw Refusal(.fieldInvalid, "The field \"services\" must be an array of up to \(Self.mostOffers) services.")
        }
        var offers: [ServiceOffer] = []
        for service in services {
            guard service.names == ["id", "version"], let id = try service.textMember("id"),
                let version = try service.textMember("version")
            else { throw Refusal(.fieldInvalid, "Each of \"services\" is an object with \"id\" and \"version\".") }
            offers.append(ServiceOffer(try ServiceID.checked(id), try ServiceVersion.checked(version)))
        }
        guard let keys = body["keys"].flatMap(KeyBundle.init) else {
            throw Refusal(.fieldInvalid, "The field \"keys\" must be a signed key.")
        }
        let icon = try body.textMember("icon").map { text throws(Refusal) in
            guard let icon = Base64URL.decodeLeniently(text).flatMap(ServiceIcon.init(png:)) else {
                throw Refusal(
                    .fieldInvalid, "The field \"icon\" must be a PNG of up to \(ServiceIcon.mostBytes) bytes, in base64url.")
            }
            return icon
        }
        let revision = try body.textMember("revision")
        try ReportedRevisions.check(revision)
        self.init(
            name: try text("name", Self.nameBytes), version: try text("version", Self.versionBytes), offers: offers,
            keys: keys, icon: icon, revision: revision)
    }
}

extension ServiceProvider {
    /// - Parameter isLive: Whether the provider is connected.
    func json(isLive: Bool) -> JSONValue {
        var members: [JSONValue.Member] = [
            .init(name: "app", value: .string(appID.text)), .init(name: "device", value: .string(id.description)),
            .init(name: "name", value: .string(profile.name)), .init(name: "version", value: .string(profile.version)),
            .init(name: "live", value: .bool(isLive)),
            .init(
                name: "services",
                value: .array(
                    profile.offers.map { offer in
                        .object([
                            .init(name: "id", value: .string(offer.service.text)),
                            .init(name: "version", value: .string(offer.version.text)),
                        ])
                    })), .init(name: "keys", value: profile.keys.json),
            .init(name: "type", value: .string((cluster == nil ? Kind.application : .server).rawValue)),
        ]
        if let icon = profile.icon { members.append(.init(name: "icon", value: .string(icon.name))) }
        if let cluster { members.append(.init(name: "server", value: cluster.json)) }
        return .object(members)
    }
}

extension ClusterPlace {
    fileprivate var json: JSONValue {
        var members: [JSONValue.Member] = [.init(name: "priority", value: .integer(priority))]
        if let host { members.append(.init(name: "host", value: .string(host))) }
        if let port { members.append(.init(name: "port", value: .integer(port))) }
        return .object(members)
    }
}
