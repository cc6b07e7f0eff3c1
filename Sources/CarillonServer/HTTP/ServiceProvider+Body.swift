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
            else {
                throw Refusal(.fieldInvalid, "Each element of \"services\" must be an object with \"id\" and \"version\".")
            }
            offers.append(ServiceOffer(try ServiceID.checked(id), try ServiceVersion.checked(version)))
        }
        guard let keys = body["keys"].flatMap(KeyBundle.init) else {
            throw Refusal(.fieldInvalid, "The field \"keys\" must be a signed key.")
        }
        let icon = try body.textMember("icon").map { text throws(Refusal) in
            guard let icon = Base64URL.decodeLeniently(text).flatMap(ServiceIcon.init(png:)) else {
                throw Refusal(
                    .fieldInvalid,
                    "The field \"icon\" must be a PNG image of at most \(ServiceIcon.mostBytes) bytes, in base64url.")
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
        let services = profile.offers.map { offer -> JSONValue in
            ["id": .string(offer.service.text), "version": .string(offer.version.text)]
        }
        return [
            "app": .string(appID.text), "device": .string(id.description),
            "name": .string(profile.name), "version": .string(profile.version),
            "live": .bool(isLive), "services": .array(services), "keys": profile.keys.json,
            "type": .string((cluster == nil ? Kind.application : .server).rawValue),
            "icon": (profile.icon?.name).map(JSONValue.string), "server": cluster?.json,
        ]
    }
}

extension ClusterPlace {
    fileprivate var json: JSONValue {
        ["priority": .integer(priority), "host": host.map(JSONValue.string), "port": port.map(JSONValue.integer)]
    }
}
